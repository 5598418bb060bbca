package safepath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// open opens a directory until the test ends.
func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// must fails the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mount mounts a file system until the test ends.
func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	must(t, unix.Mount(source, target, kind, flags, ""))
	t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) })
}

// write creates a file and its missing parent directories.
func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestOpenFile(t *testing.T) {
	top := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	write(t, filepath.Join(top, "in", "good"), "good")
	must(t, os.Symlink(secret, filepath.Join(top, "absolute")))
	must(t, os.Symlink("in/good", filepath.Join(top, "inside")))
	must(t, os.Symlink("in", filepath.Join(top, "dirlink")))
	must(t, os.Symlink("/proc/self/root", filepath.Join(top, "magic")))
	must(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0o644))
	must(t, unix.Mknod(filepath.Join(top, "device"), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3))))
	d := open(t, top)
	for _, test := range []struct {
		name string
		want error
	}{
		{"in/good", nil},
		{"absolute", ErrLink},
		{"inside", ErrLink},
		{"dirlink/good", ErrLink},
		{"magic/etc/passwd", ErrLink},
		{"fifo", ErrNotRegular},
		{"device", ErrNotRegular},
		{"in", ErrNotRegular},
		{"missing", fs.ErrNotExist},
		{"../" + filepath.Base(top) + "/in/good", fs.ErrInvalid},
		{secret, fs.ErrInvalid},
	} {
		f, err := d.OpenFile(test.name)
		if !errors.Is(err, test.want) {
			t.Errorf("OpenFile(%q): got error %v, want %v", test.name, err, test.want)
		}
		if f != nil {
			text, _ := io.ReadAll(f)
			if string(text) != "good" {
				t.Errorf("OpenFile(%q): got content %q, want %q", test.name, text, "good")
			}
			f.Close()
		}
	}
}

func TestMkdir(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	d := open(t, t.TempDir())
	for i, want := range []bool{true, false} {
		made, err := d.Mkdir("vol", 0o2777, 1234)
		must(t, err)
		if made != want {
			t.Errorf("Mkdir, call %d: got made %t, want %t", i+1, made, want)
		}
	}
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(d.Path(), "vol"), &st))
	if st.Mode&0o7777 != 0o2777 || st.Gid != 1234 {
		t.Errorf("created directory: got mode %o and gid %d; want mode 2777 and gid 1234", st.Mode&0o7777, st.Gid)
	}
	must(t, os.Mkdir(filepath.Join(d.Path(), ".new.sub"), 0o700)) // as a container would create it
	must(t, os.WriteFile(filepath.Join(d.Path(), ".new.sub", "planted"), nil, 0o600))
	for _, name := range []string{"sub", strings.Repeat("n", unix.NAME_MAX)} {
		made, err := d.Mkdir(name, 0o777, -1)
		if entries, _ := os.ReadDir(filepath.Join(d.Path(), name)); err != nil || !made || len(entries) > 0 {
			t.Errorf("Mkdir %s: got made %v, entries %v, error %v; want an empty new directory", name, made, entries, err)
		}
	}
	must(t, unix.Stat(filepath.Join(d.Path(), ".new.sub"), &st))
	if st.Mode&0o7777 != 0o700 {
		t.Errorf("mode of a directory that a container created: got %o, want 700", st.Mode&0o7777)
	}
	must(t, os.Symlink("/etc", filepath.Join(d.Path(), "link")))
	if _, err := d.Mkdir("link", 0o755, -1); !errors.Is(err, ErrLink) {
		t.Errorf("Mkdir of the name of a link: got error %v, want ErrLink", err)
	}
	if _, err := d.Create("link", 0o644); !errors.Is(err, fs.ErrExist) && !errors.Is(err, ErrLink) {
		t.Errorf("Create of the name of a link: got error %v, want ErrExist or ErrLink", err)
	}
}

// TestMkdir_PlainMode checks that Mkdir creates a directory without a temporary name if the directory needs
// no special mode or group. Therefore a process that is killed leaves no temporary directory.
func TestMkdir_PlainMode(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	d := open(t, t.TempDir())
	watch, err := fsnotify.NewWatcher()
	must(t, err)
	defer watch.Close()
	must(t, watch.Add(d.Path()))
	if made, err := d.Mkdir("web", 0o755, -1); err != nil || !made {
		t.Fatalf("Mkdir: got made %v, error %v; want true, nil", made, err)
	}
	must(t, os.Mkdir(filepath.Join(d.Path(), "end"), 0o700))
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(d.Path(), "web"), &st))
	if st.Mode&0o7777 != 0o755 {
		t.Errorf("mode of the created directory: got %o, want 755", st.Mode&0o7777)
	}
	for e := range watch.Events {
		switch filepath.Base(e.Name) {
		case "web":
		case "end":
			return
		default:
			t.Errorf("names of created entries: got %s, want only web", filepath.Base(e.Name))
		}
	}
}

func TestRemoveAll_Links(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "kept"), "x")
	d := open(t, t.TempDir())
	top := filepath.Join(d.Path(), "pod")
	write(t, filepath.Join(top, "a/b/c"), "x")
	must(t, os.Symlink(outside, filepath.Join(top, "a/link")))
	must(t, unix.Mkfifo(filepath.Join(top, "a/fifo"), 0))
	must(t, os.Chmod(filepath.Join(top, "a/b"), 0))
	must(t, d.RemoveAll(t.Context(), "pod"))
	must(t, d.RemoveAll(t.Context(), "pod"))
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("file outside of the tree after RemoveAll of a tree with a link to it: got error %v, want it to exist", err)
	}
	if names, _ := d.Names(); len(names) != 0 {
		t.Errorf("got remaining names %q, want none", names)
	}
	must(t, os.Symlink(outside, top))
	must(t, d.RemoveAll(t.Context(), "pod")) // removes only the link
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("file outside of the tree after RemoveAll of a link: got error %v, want it to exist", err)
	}
}

func TestRemoveAll_Mounts(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "kept"), "x")
	for _, kind := range []string{"tmpfs", "bind", "file"} {
		t.Run(kind, func(t *testing.T) {
			d := open(t, t.TempDir())
			at := filepath.Join(d.Path(), "pod/deep/mnt")
			must(t, os.MkdirAll(filepath.Dir(at), 0o755))
			switch kind {
			case "tmpfs":
				must(t, os.Mkdir(at, 0o755))
				mount(t, "tmpfs", at, "tmpfs", 0)
				write(t, filepath.Join(at, "kept"), "x")
			case "bind":
				must(t, os.Mkdir(at, 0o755))
				mount(t, outside, at, "", unix.MS_BIND)
			case "file":
				write(t, at, "")
				mount(t, filepath.Join(outside, "kept"), at, "", unix.MS_BIND)
			}
			if err := d.RemoveAll(t.Context(), "pod"); !errors.Is(err, ErrMount) {
				t.Errorf("RemoveAll: got error %v, want ErrMount", err)
			}
			if _, err := os.Stat(at); err != nil {
				t.Errorf("mount point after RemoveAll: got error %v, want it to exist", err)
			}
			must(t, unix.Unmount(at, 0))
			must(t, d.RemoveAll(t.Context(), "pod"))
			if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
				t.Errorf("file on the mount after RemoveAll: got error %v, want it to exist", err)
			}
		})
	}
}

// createChain creates directories that are nested deeper than the maximum length of a path
// allows.
func createChain(t *testing.T, top string, depth int) {
	t.Helper()
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, "d", 0o755))
		next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
}

func TestRemoveAll_DeepAndWide(t *testing.T) {
	d := open(t, t.TempDir())
	must(t, os.Mkdir(filepath.Join(d.Path(), "pod"), 0o755))
	createChain(t, filepath.Join(d.Path(), "pod"), 3*maxDepth+7)
	for i := range 3 * maxNamesPerRead {
		must(t, os.MkdirAll(filepath.Join(d.Path(), "pod", fmt.Sprint(i), "sub"), 0o755))
	}
	u, err := open(t, filepath.Join(d.Path(), "pod")).Usage(t.Context(), 1<<20)
	must(t, err)
	if u.Excess != "directories that are nested more than 4096 levels deep" || u.Inodes < 6*maxNamesPerRead {
		t.Errorf("usage of a tree that is too deep: got %+v, want an excess of directories nested more than 4096 levels deep, and at least %d inodes", u, 6*maxNamesPerRead)
	}
	must(t, d.RemoveAll(t.Context(), "pod"))
	if names, _ := d.Names(); len(names) != 0 {
		t.Errorf("got remaining names %q, want none", names)
	}
}

func TestRemoveContents_Keep(t *testing.T) {
	d := open(t, t.TempDir())
	write(t, filepath.Join(d.Path(), "journal.json"), "{}")
	write(t, filepath.Join(d.Path(), "a/journal.json"), "{}")
	must(t, d.RemoveContents(t.Context(), "journal.json"))
	names, err := d.Names()
	if err != nil || len(names) != 1 || names[0] != "journal.json" {
		t.Errorf("got remaining names %q, error %v; want only journal.json", names, err)
	}
}

func TestRemoveAll_Canceled(t *testing.T) {
	d := open(t, t.TempDir())
	write(t, filepath.Join(d.Path(), "pod/a/b"), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.RemoveAll(ctx, "pod"); !errors.Is(err, context.Canceled) {
		t.Errorf("RemoveAll: got error %v, want Canceled", err)
	}
}

// TestRemoveAll_SwappedLink removes a tree while a directory in the tree is repeatedly
// replaced by a link. It checks that nothing outside of the tree is removed.
func TestRemoveAll_SwappedLink(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "deep/kept"), "x")
	d := open(t, t.TempDir())
	top := filepath.Join(d.Path(), "pod")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			os.MkdirAll(filepath.Join(top, "x/deep"), 0o755)
			os.WriteFile(filepath.Join(top, "x/deep/f"), nil, 0o644)
			os.Symlink(outside, filepath.Join(top, "y"))
			unix.Renameat2(unix.AT_FDCWD, filepath.Join(top, "x"), unix.AT_FDCWD, filepath.Join(top, "y"), unix.RENAME_EXCHANGE)
		}
	}()
	for range 300 {
		d.RemoveAll(t.Context(), "pod") // may fail, but must not follow the link
	}
	cancel()
	<-done
	if _, err := os.Stat(filepath.Join(outside, "deep/kept")); err != nil {
		t.Fatalf("file outside of the tree after RemoveAll while links and directories are swapped: got error %v, want it to exist", err)
	}
	must(t, d.RemoveAll(t.Context(), "pod"))
}

func TestUsage(t *testing.T) {
	d := open(t, t.TempDir())
	big := make([]byte, 1<<20)
	must(t, os.MkdirAll(filepath.Join(d.Path(), "a/mnt"), 0o755))
	must(t, os.WriteFile(filepath.Join(d.Path(), "a/one"), big, 0o644))
	must(t, os.Link(filepath.Join(d.Path(), "a/one"), filepath.Join(d.Path(), "a/two")))
	outside := filepath.Join(t.TempDir(), "big")
	must(t, os.WriteFile(outside, big, 0o644))
	must(t, os.Symlink(outside, filepath.Join(d.Path(), "link")))
	mount(t, "tmpfs", filepath.Join(d.Path(), "a/mnt"), "tmpfs", 0)
	must(t, os.WriteFile(filepath.Join(d.Path(), "a/mnt/other"), big, 0o644))
	write(t, filepath.Join(d.Path(), "file"), "")
	mount(t, outside, filepath.Join(d.Path(), "file"), "", unix.MS_BIND)
	u, err := d.Usage(t.Context(), 1000)
	must(t, err)
	if u.Excess != "" || u.Bytes < 1<<20 || u.Bytes > 1<<20+64<<10 {
		t.Errorf("usage of the tree: got %+v, want 1 MiB to 64 KiB more, and no excess", u)
	}
	if u, err = d.Usage(t.Context(), 2); err != nil || u.Excess != "more than 2 files and directories" {
		t.Errorf("usage with a limit of 2: got %+v, error %v; want the excess \"more than 2 files and directories\"", u, err)
	}
}

func TestUsage_ManyDirectories(t *testing.T) {
	d := open(t, t.TempDir())
	mount(t, "tmpfs", d.Path(), "tmpfs", 0)
	d = open(t, d.Path())
	for i := range maxPending + 1 {
		must(t, unix.Mkdirat(d.Fd(), fmt.Sprint(i), 0o755))
	}
	if u, err := d.Usage(t.Context(), 1<<20); err != nil || u.Excess != "more than 65536 directories at one level" {
		t.Errorf("usage: got %+v, error %v; want the excess \"more than 65536 directories at one level\"", u, err)
	}
}

// TestWalk_RemovedDirectory checks that the walk treats a directory as empty if it is removed before the walk
// lists it. This must not be an error.
func TestWalk_RemovedDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone")
	must(t, os.Mkdir(path, 0o755))
	dir, err := os.Open(path)
	must(t, err)
	defer dir.Close()
	must(t, os.Remove(path))
	w := walker{visitor: &usageVisitor{limit: 10}, levels: []level{{name: "gone", dir: dir}}}
	must(t, w.list())
}

// movingVisitor moves a directory to another parent while the walk visits a file in that
// directory.
type movingVisitor struct {
	usageVisitor
	from, to string
}

func (m *movingVisitor) entry(fd int, name string, depth int) (bool, error) {
	if name == "moved-file" {
		if err := os.Rename(m.from, m.to); err != nil {
			return false, err
		}
	}
	return m.usageVisitor.entry(fd, name, depth)
}

// TestUsage_MovedDirectory moves a directory to another parent while the walk is in it. If the walk keeps the
// parents of the directory open, it must measure the tree completely. Otherwise it must return errMoved.
func TestUsage_MovedDirectory(t *testing.T) {
	for _, test := range []struct {
		openLevels int
		want       error
	}{{maxOpenLevels, nil}, {0, errMoved}} {
		d := open(t, t.TempDir())
		big := make([]byte, 1<<20)
		must(t, os.MkdirAll(filepath.Join(d.Path(), "a/b/c"), 0o755))
		write(t, filepath.Join(d.Path(), "a/b/c/moved-file"), "")
		for _, dir := range []string{"", "a", "a/b", "a/b/z", "a/y", "x"} {
			must(t, os.MkdirAll(filepath.Join(d.Path(), dir), 0o755))
			must(t, os.WriteFile(filepath.Join(d.Path(), dir, "big"), big, 0o600))
		}
		m := &movingVisitor{usageVisitor: usageVisitor{limit: 1000, countedLinks: map[inode]struct{}{}}, from: filepath.Join(d.Path(), "a/b/c"), to: filepath.Join(t.TempDir(), "c")}
		err := walkBelow(t.Context(), d, m, test.openLevels)
		if !errors.Is(err, test.want) {
			t.Errorf("with up to %d levels kept open: got error %v, want %v", test.openLevels, err, test.want)
		}
		if err == nil && (m.Bytes < 6<<20 || m.Bytes > 6<<20+64<<10) {
			t.Errorf("measured bytes: got %d, want 6 MiB to 64 KiB more", m.Bytes)
		}
	}
}

// TestMkdir_Concurrent checks that concurrent calls create one directory, and that the
// directory has its mode when the calls return.
func TestMkdir_Concurrent(t *testing.T) {
	for range 50 {
		dir := t.TempDir()
		d, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := d.Mkdir("made", 0o751, -1); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		d.Close()
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Fatalf("entries after concurrent calls of Mkdir: got %v, error %v; want one directory", entries, err)
		}
		if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o751 {
			t.Errorf("directory after concurrent calls of Mkdir: got %v, error %v; want mode 751", info, err)
		}
	}
}

func TestFollow(t *testing.T) {
	top := t.TempDir()
	outside := t.TempDir()
	write(t, filepath.Join(top, "in", "good"), "good")
	write(t, filepath.Join(outside, "secret"), "secret")
	must(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0o644))
	for name, target := range map[string]string{
		"file": "in/good", "dir": "in", "chain": "dir/up", "in/up": "../file", "gone": "nowhere",
		"absolute": filepath.Join(top, "in"), "out": "../" + filepath.Base(outside), "root": "/", "loop": "loop",
		"magic": "/proc/self/root",
	} {
		must(t, os.Symlink(target, filepath.Join(top, name)))
	}
	d := open(t, top)
	for name, want := range map[string]error{
		"in": nil, "file": nil, "dir/good": nil, "chain": nil, "fifo": nil, ".": nil,
		"none": fs.ErrNotExist, "gone": fs.ErrNotExist, "absolute": ErrOutside, "out/secret": ErrOutside, "root": ErrOutside,
		"loop": ErrOutside, "magic": ErrOutside, "..": fs.ErrInvalid, "/": fs.ErrInvalid, "in/../..": fs.ErrInvalid,
	} {
		f, err := d.Follow(name)
		if !errors.Is(err, want) {
			t.Errorf("Follow(%q): got error %v, want %v", name, err, want)
		}
		if err == nil {
			f.Close()
		}
	}
	sub, err := d.FollowDir("dir")
	must(t, err)
	defer sub.Close()
	if names, err := sub.Names(); err != nil || len(names) != 2 {
		t.Errorf("got names %q, error %v; want 2 names", names, err)
	}
	if _, err := d.FollowDir("fifo"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("FollowDir of a FIFO: got error %v, want ENOTDIR", err)
	}
}

func TestNames(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "b"), "")
	write(t, filepath.Join(top, "a", "c"), "")
	for dir, want := range map[string]string{top: "a b", filepath.Join(top, "none"): "", filepath.Join(top, "b", "none"): "", filepath.Join(top, "b"): ""} {
		if got, err := Names(dir); err != nil || strings.Join(got, " ") != want {
			t.Errorf("Names(%s): got %q, error %v; want %q", dir, got, err, want)
		}
	}
}

func TestHasFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string)
		want bool
	}{
		"nothing":     {func(string) {}, false},
		"directories": {func(dir string) { must(t, os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755)) }, false},
		"an empty file": {func(dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755))
			write(t, filepath.Join(dir, "a/b/c/f"), "")
		}, true},
		"a link": {func(dir string) { must(t, os.Symlink("/nowhere", filepath.Join(dir, "l"))) }, true},
		"a mount point": {func(dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, "a/mnt"), 0o755))
			mount(t, "tmpfs", filepath.Join(dir, "a/mnt"), "tmpfs", 0)
		}, true},
	} {
		d := open(t, t.TempDir())
		c.make(d.Path())
		if got, err := d.HasFiles(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: got %t, error %v; want %t", name, got, err, c.want)
		}
	}
}
