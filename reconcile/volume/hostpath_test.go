package volume

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// makeFiles creates a directory with a file of every type, and returns the path of the directory.
func makeFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(at("dir"), 0o700))
	must(t, os.WriteFile(at("file"), nil, 0o600))
	l, err := net.Listen("unix", at("socket"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	must(t, unix.Mknod(at("char"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	must(t, unix.Mknod(at("block"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 200))))
	must(t, unix.Mkfifo(at("fifo"), 0o600))
	must(t, os.Symlink("dir", at("dirlink")))
	must(t, os.Symlink("file", at("filelink")))
	must(t, os.Symlink(filepath.Join(dir, "nowhere"), at("dangling")))
	return dir
}

func readDir(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	return entries
}

// TestHostPath_Types checks which types of files each hostPath type accepts, and that Check changes
// nothing.
func TestHostPath_Types(t *testing.T) {
	all := "dir file socket char block fifo dirlink filelink dangling missing"
	for kind, accepted := range map[v1.HostPathType]string{
		v1.HostPathUnset:             all,
		v1.HostPathDirectoryOrCreate: "dir dirlink missing",
		v1.HostPathDirectory:         "dir dirlink",
		v1.HostPathFileOrCreate:      "file filelink missing",
		v1.HostPathFile:              "file filelink",
		v1.HostPathSocket:            "socket",
		v1.HostPathCharDev:           "char",
		v1.HostPathBlockDev:          "block",
		"Sock":                       "",
	} {
		dir := makeFiles(t)
		for _, name := range strings.Fields(all) {
			path := filepath.Join(dir, name)
			before, pod := len(readDir(t, dir)), newPod(hostPathVolume("v", path, kind))
			checked := newDir(t).Check(t.Context(), pod, nil, nil)
			if after := len(readDir(t, dir)); after != before {
				t.Errorf("type %q, path %s: Check created %d files, want 0", kind, name, after-before)
			}
			got, err := newDir(t).Prepare(t.Context(), pod, nil)
			if (checked == nil) != (err == nil) {
				t.Errorf("type %q, path %s: got error %v from Check and %v from Prepare; want errors from both or from none", kind, name, checked, err)
			}
			want := strings.Contains(" "+accepted+" ", " "+name+" ")
			if (err == nil) != want {
				t.Errorf("type %q, path %s: got error %v, want success: %v", kind, name, err, want)
			}
			if err == nil && got["v"] != path {
				t.Errorf("type %q: got path %q, want %q", kind, got["v"], path)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "nowhere")); err == nil {
			t.Errorf("type %q: target of the dangling link: got a created file, want none", kind)
		}
	}
}

// TestHostPath_Create checks the modes of created files and directories, and the error if the parent of
// a file does not exist.
func TestHostPath_Create(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := t.TempDir()
	for path, kind := range map[string]v1.HostPathType{"a/b/c": v1.HostPathDirectoryOrCreate, "f": v1.HostPathFileOrCreate} {
		_, err := newDir(t).Prepare(t.Context(), newPod(hostPathVolume("v", filepath.Join(dir, path), kind)), nil)
		must(t, err)
	}
	for path, want := range map[string]os.FileMode{"a/b/c": os.ModeDir | 0o755, "f": 0o644} {
		info, err := os.Stat(filepath.Join(dir, path))
		must(t, err)
		if info.Mode() != want {
			t.Errorf("mode of %s: got %v, want %v", path, info.Mode(), want)
		}
	}
	_, err := newDir(t).Prepare(t.Context(), newPod(hostPathVolume("v", filepath.Join(dir, "no/dir/file"), v1.HostPathFileOrCreate)), nil)
	if err == nil || !strings.Contains(err.Error(), "the parent directory does not exist") {
		t.Errorf("file in a missing directory: got error %v, want one about the parent directory", err)
	}
}

// TestHostPath_InvalidPaths checks that relative paths and paths with ".." are rejected.
func TestHostPath_InvalidPaths(t *testing.T) {
	for _, bad := range []string{"", "etc", "./etc", "/srv/../etc", ".."} {
		if _, err := newDir(t).Prepare(t.Context(), newPod(hostPathVolume("v", bad, v1.HostPathUnset)), nil); err == nil {
			t.Errorf("hostPath %q: got no error, want one", bad)
		}
	}
}

// TestHostPath_ParentLink checks the effect of a link in a parent directory, which a container may have
// created. Podd follows the link, like the runtime. It may create an empty file or directory, but does
// not change existing files.
func TestHostPath_ParentLink(t *testing.T) {
	top := t.TempDir()
	outside, planted := filepath.Join(top, "outside"), filepath.Join(top, "planted")
	must(t, os.MkdirAll(filepath.Join(outside, "dir"), 0o700))
	must(t, os.Chmod(filepath.Join(outside, "dir"), 0o700))
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte("secret"), 0o600))
	must(t, os.Symlink(filepath.Join(top, "nowhere"), filepath.Join(outside, "dangling")))
	must(t, os.Symlink(outside, planted))
	before := listTree(t, filepath.Join(outside, "dir")) + listTree(t, filepath.Join(outside, "file"))
	for _, c := range []struct {
		name string
		kind v1.HostPathType
		ok   bool
	}{
		{"newdir", v1.HostPathDirectoryOrCreate, true}, {"newfile", v1.HostPathFileOrCreate, true},
		{"dir", v1.HostPathDirectoryOrCreate, true}, {"file", v1.HostPathFileOrCreate, true},
		{"dir", v1.HostPathFileOrCreate, false}, {"file", v1.HostPathDirectoryOrCreate, false},
		{"dangling", v1.HostPathDirectoryOrCreate, false}, {"dangling", v1.HostPathFileOrCreate, false},
	} {
		_, err := newDir(t).Prepare(t.Context(), newPod(hostPathVolume("v", filepath.Join(planted, c.name), c.kind)), nil)
		if (err == nil) != c.ok {
			t.Errorf("type %s, path %s: got error %v, want success %v", c.kind, c.name, err, c.ok)
		}
	}
	if after := listTree(t, filepath.Join(outside, "dir")) + listTree(t, filepath.Join(outside, "file")); after != before {
		t.Errorf("existing files changed: before\n%s\nafter\n%s", before, after)
	}
	if text, err := os.ReadFile(filepath.Join(outside, "file")); string(text) != "secret" {
		t.Errorf("existing file: got %q, error %v; want \"secret\"", text, err)
	}
	if info, err := os.Stat(filepath.Join(outside, "newfile")); err != nil || info.Size() != 0 || info.Mode() != 0o644 {
		t.Errorf("new file: got %v, error %v; want an empty file with mode 644", info, err)
	}
	if entries := readDir(t, filepath.Join(outside, "newdir")); len(entries) != 0 {
		t.Errorf("new directory: got %v, want no entries", entries)
	}
	if _, err := os.Lstat(filepath.Join(top, "nowhere")); err == nil {
		t.Error("target of the dangling link: got a created file, want none")
	}
}

// TestHostPath_ParentChanges checks that createDir does not change the mode of an existing
// directory, even if a container replaces a link in the path with another link while createDir
// runs.
func TestHostPath_ParentChanges(t *testing.T) {
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	must(t, os.MkdirAll(at("victim/sub"), 0o700))
	must(t, os.Mkdir(at("own"), 0o755))
	must(t, os.Symlink("own", at("x")))
	must(t, os.Symlink("victim", at("y")))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, at("x"), unix.AT_FDCWD, at("y"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 5000 {
		_ = createDir(at("x/sub"))
		must(t, os.RemoveAll(at("own/sub")))
	}
	close(stop)
	<-stopped
	if info, err := os.Stat(at("victim/sub")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the existing directory: got %v, error %v; want 700", info.Mode(), err)
	}
}
