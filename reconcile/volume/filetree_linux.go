package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podd/reconcile/render"
	"podd/runtime/safepath"
)

// A fileTree is the directory of a volume with files that are replaced atomically:
//
//	..2026_11_21_14_02_11.123456789/   the files, which are not changed while in use
//	    a.conf, sub/b.conf
//	..data -> ..2026_11_21_14_02_11.123456789
//	a.conf -> ..data/a.conf
//	sub -> ..data/sub
//
// A rename of ..data replaces the directory. The layout is that of the kubelet, because
// programs watch ..data.
type fileTree struct {
	dir *safepath.Dir
	gid int // group of all entries; -1 for none
}

const (
	dataLink  = "..data"
	dataDraft = "..data_tmp"
)

// write sets the content of the tree to files. It does nothing if this is the content, and
// removes what a crash left incomplete.
func (t *fileTree) write(files map[string]render.File) error {
	for name := range files {
		if err := checkFile(name); err != nil {
			return err
		}
	}
	now := t.current()
	if now == "" || !t.holds(now, files) {
		next, err := t.fill(files)
		if err != nil {
			return fmt.Errorf("writing its files: %w", err)
		}
		if err := t.swap(next); err != nil {
			return fmt.Errorf("replacing its files: %w", err)
		}
		now = next
	}
	if err := t.link(files); err != nil {
		return fmt.Errorf("linking its files: %w", err)
	}
	if err := t.sweep(now, files); err != nil {
		return fmt.Errorf("removing its old files: %w", err)
	}
	return nil
}

// checkFile returns an error if name, which is untrusted, is not a valid path in a volume.
func checkFile(name string) error {
	switch {
	case !filepath.IsLocal(name) || name != path.Clean(name) || name == ".":
		return fmt.Errorf("%.80q is not a path within a volume", name)
	case strings.HasPrefix(name, ".."):
		return fmt.Errorf("%.80q begins with .., as the volume's own entries do", name)
	}
	return nil
}

// current returns the name of the directory in use; "" if there is none.
func (t *fileTree) current() string {
	name, err := t.dir.Readlink(dataLink)
	if err != nil || !strings.HasPrefix(name, "..") || name == ".." || strings.Contains(name, "/") {
		return ""
	}
	if sub, err := t.dir.SubSameMount(name); err != nil || sub.Close() != nil {
		return ""
	}
	return name
}

// holds reports whether a directory has exactly these files.
func (t *fileTree) holds(name string, files map[string]render.File) bool {
	dir, err := t.dir.SubSameMount(name)
	if err != nil {
		return false
	}
	defer dir.Close()
	dirs := map[string]bool{}
	for file := range files {
		for d := path.Dir(file); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	seen, err := count(dir, dirs)
	if err != nil || seen != len(files)+len(dirs) {
		return false
	}
	for file, want := range files {
		if !t.same(dir, file, want) {
			return false
		}
	}
	return true
}

// count returns the number of entries in a directory and in dirs below it.
func count(dir *safepath.Dir, dirs map[string]bool) (int, error) {
	names, err := dir.Names()
	n := len(names)
	for d := range dirs {
		sub, suberr := dir.SubSameMount(d)
		if suberr != nil {
			return 0, suberr
		}
		names, suberr := sub.Names()
		sub.Close()
		n, err = n+len(names), errors.Join(err, suberr)
	}
	return n, err
}

func (t *fileTree) same(dir *safepath.Dir, file string, want render.File) bool {
	f, err := dir.OpenFile(file)
	if err != nil {
		return false
	}
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Size != int64(len(want.Data)) || st.Mode&0o7777 != t.mode(want.Mode) ||
		t.gid >= 0 && int(st.Gid) != t.gid || want.Owner != nil && int64(st.Uid) != *want.Owner {
		return false
	}
	have, err := io.ReadAll(io.LimitReader(f, st.Size+1))
	return err == nil && bytes.Equal(have, want.Data)
}

// mode returns the mode of a file. If there is a group, it can read the file.
func (t *fileTree) mode(m uint32) uint32 {
	if t.gid >= 0 {
		m |= 0o440
	}
	return m
}

// fill creates a new directory with the files. It is not in use yet.
func (t *fileTree) fill(files map[string]render.File) (string, error) {
	name := fmt.Sprintf("..%s.%010d", time.Now().UTC().Format("2006_01_02_15_04_05"), rand.Uint32())
	if err := t.mkdir(t.dir, name); err != nil {
		return "", err
	}
	dir, err := t.dir.SubSameMount(name)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := t.create(dir, file, files[file]); err != nil {
			return "", err
		}
	}
	return name, nil
}

func (t *fileTree) mkdir(at *safepath.Dir, name string) error {
	mode := uint32(0o755)
	if t.gid >= 0 {
		mode |= unix.S_ISGID
	}
	_, err := at.Mkdir(name, mode, t.gid)
	return err
}

func (t *fileTree) create(dir *safepath.Dir, file string, want render.File) error {
	steps := strings.Split(file, "/")
	for i := range steps[:len(steps)-1] {
		if err := t.mkdir(dir, path.Join(steps[:i+1]...)); err != nil {
			return err
		}
	}
	f, err := dir.Create(file, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(want.Data)
	if err == nil && t.gid >= 0 {
		err = unix.Fchown(int(f.Fd()), -1, t.gid)
	}
	if err == nil && want.Owner != nil {
		err = unix.Fchown(int(f.Fd()), int(*want.Owner), -1)
	}
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), t.mode(want.Mode))
	}
	return errors.Join(err, f.Close())
}

// swap makes a directory the one in use.
func (t *fileTree) swap(name string) error {
	if err := t.dir.RemoveAll(context.Background(), dataDraft); err != nil {
		return err
	}
	if err := unix.Symlinkat(name, t.dir.Fd(), dataDraft); err != nil {
		return err
	}
	err := unix.Renameat(t.dir.Fd(), dataDraft, t.dir.Fd(), dataLink)
	if err == unix.EISDIR || err == unix.ENOTEMPTY { // only podd should write here
		if err = t.dir.RemoveAll(context.Background(), dataLink); err == nil {
			err = unix.Renameat(t.dir.Fd(), dataDraft, t.dir.Fd(), dataLink)
		}
	}
	return err
}

// topNames returns the first path elements of the files.
func topNames(files map[string]render.File) map[string]bool {
	out := map[string]bool{}
	for file := range files {
		first, _, _ := strings.Cut(file, "/")
		out[first] = true
	}
	return out
}

func (t *fileTree) link(files map[string]render.File) error {
	for name := range topNames(files) {
		target := path.Join(dataLink, name)
		if now, err := t.dir.Readlink(name); err == nil && now == target {
			continue
		}
		if err := t.dir.RemoveAll(context.Background(), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := unix.Symlinkat(target, t.dir.Fd(), name); err != nil {
			return &fs.PathError{Op: "link", Path: name, Err: err}
		}
	}
	return nil
}

// sweep removes all entries except the directory in use and the links to it.
func (t *fileTree) sweep(now string, files map[string]render.File) error {
	names, err := t.dir.Names()
	if err != nil {
		return err
	}
	stay := topNames(files)
	stay[now], stay[dataLink] = true, true
	for _, name := range names {
		if stay[name] {
			continue
		}
		if err := t.dir.RemoveAll(context.Background(), name); err != nil {
			return err
		}
	}
	return nil
}
