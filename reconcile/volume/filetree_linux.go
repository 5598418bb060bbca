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
// A rename of ..data replaces all files at once. The layout is that of the kubelet, because
// programs watch ..data.
type fileTree struct {
	dir *safepath.Dir
	gid int // group of all entries; -1 for none
}

const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
)

// write makes the given files the content of the tree. If the tree already contains exactly these
// files, write only removes the remains of a crash.
func (t *fileTree) write(files map[string]render.File) error {
	for name := range files {
		if err := checkFile(name); err != nil {
			return err
		}
	}
	oldDir := t.currentDir()
	if oldDir == "" || !t.hasContent(oldDir, files) {
		newDir, err := t.createDir(files)
		if err != nil {
			return fmt.Errorf("writing the files of the volume: %w", err)
		}
		if err := t.switchDataLink(newDir); err != nil {
			return fmt.Errorf("replacing the files of the volume: %w", err)
		}
		oldDir = newDir
	}
	if err := t.link(files); err != nil {
		return fmt.Errorf("creating the links to the files of the volume: %w", err)
	}
	if err := t.removeOld(oldDir, files); err != nil {
		return fmt.Errorf("removing old files of the volume: %w", err)
	}
	return nil
}

// checkFile returns an error if name, which is untrusted, is not a valid path in a volume.
func checkFile(name string) error {
	switch {
	case !filepath.IsLocal(name) || name != path.Clean(name) || name == ".":
		return fmt.Errorf("%.80q is not a valid path of a file in a volume", name)
	case strings.HasPrefix(name, ".."):
		return fmt.Errorf("%.80q begins with .., which is reserved for podd's own files in a volume", name)
	}
	return nil
}

// currentDir returns the name of the directory to which ..data refers, or "" if there is none.
func (t *fileTree) currentDir() string {
	name, err := t.dir.Readlink(dataLink)
	if err != nil || !strings.HasPrefix(name, "..") || name == ".." || strings.Contains(name, "/") {
		return ""
	}
	if subdir, err := t.dir.SubSameMount(name); err != nil || subdir.Close() != nil {
		return ""
	}
	return name
}

// hasContent reports whether the directory with this name contains exactly the given files.
func (t *fileTree) hasContent(name string, files map[string]render.File) bool {
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
	n, err := countEntries(dir, dirs)
	if err != nil || n != len(files)+len(dirs) {
		return false
	}
	for name, file := range files {
		if !t.hasFile(dir, name, file) {
			return false
		}
	}
	return true
}

// countEntries returns the number of entries in dir and in its subdirectories dirs.
func countEntries(dir *safepath.Dir, dirs map[string]bool) (int, error) {
	names, err := dir.Names()
	n := len(names)
	for d := range dirs {
		subdir, subErr := dir.SubSameMount(d)
		if subErr != nil {
			return 0, subErr
		}
		names, subErr := subdir.Names()
		subdir.Close()
		n, err = n+len(names), errors.Join(err, subErr)
	}
	return n, err
}

// hasFile reports whether dir contains a file with the content, the mode and the owner of file.
// name is the path of the file in dir.
func (t *fileTree) hasFile(dir *safepath.Dir, name string, file render.File) bool {
	f, err := dir.OpenFile(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Size != int64(len(file.Data)) || st.Mode&0o7777 != t.fileMode(file.Mode) ||
		t.gid >= 0 && int(st.Gid) != t.gid || file.Owner != nil && int64(st.Uid) != *file.Owner {
		return false
	}
	content, err := io.ReadAll(io.LimitReader(f, st.Size+1))
	return err == nil && bytes.Equal(content, file.Data)
}

// fileMode returns the mode to set for a file whose desired mode is m. If the tree has a group,
// fileMode adds read permission for the group.
func (t *fileTree) fileMode(m uint32) uint32 {
	if t.gid >= 0 {
		m |= 0o440
	}
	return m
}

// createDir creates a directory with the files, and returns its name. ..data does not refer to the
// directory yet.
func (t *fileTree) createDir(files map[string]render.File) (string, error) {
	name := fmt.Sprintf("..%s.%010d", time.Now().UTC().Format("2006_01_02_15_04_05"), rand.Uint32())
	if err := t.mkdir(t.dir, name); err != nil {
		return "", err
	}
	dir, err := t.dir.SubSameMount(name)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := t.createFile(dir, path, files[path]); err != nil {
			return "", err
		}
	}
	return name, nil
}

func (t *fileTree) mkdir(parent *safepath.Dir, name string) error {
	mode := uint32(0o755)
	if t.gid >= 0 {
		mode |= unix.S_ISGID
	}
	_, err := parent.Mkdir(name, mode, t.gid)
	return err
}

// createFile creates a file and its parent directories in dir. name is the path of the file in dir.
func (t *fileTree) createFile(dir *safepath.Dir, name string, file render.File) error {
	elements := strings.Split(name, "/")
	for i := range elements[:len(elements)-1] {
		if err := t.mkdir(dir, path.Join(elements[:i+1]...)); err != nil {
			return err
		}
	}
	f, err := dir.Create(name, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(file.Data)
	if err == nil && t.gid >= 0 {
		err = unix.Fchown(int(f.Fd()), -1, t.gid)
	}
	if err == nil && file.Owner != nil {
		err = unix.Fchown(int(f.Fd()), int(*file.Owner), -1)
	}
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), t.fileMode(file.Mode))
	}
	return errors.Join(err, f.Close())
}

// switchDataLink makes ..data refer to the directory with this name.
func (t *fileTree) switchDataLink(name string) error {
	if err := t.dir.RemoveAll(context.Background(), newDataLink); err != nil {
		return err
	}
	if err := unix.Symlinkat(name, t.dir.Fd(), newDataLink); err != nil {
		return err
	}
	err := unix.Renameat(t.dir.Fd(), newDataLink, t.dir.Fd(), dataLink)
	if err == unix.EISDIR || err == unix.ENOTEMPTY { // another program has created ..data as a directory
		if err = t.dir.RemoveAll(context.Background(), dataLink); err == nil {
			err = unix.Renameat(t.dir.Fd(), newDataLink, t.dir.Fd(), dataLink)
		}
	}
	return err
}

// topNames returns the set of the first path elements of the files.
func topNames(files map[string]render.File) map[string]bool {
	names := map[string]bool{}
	for file := range files {
		name, _, _ := strings.Cut(file, "/")
		names[name] = true
	}
	return names
}

// link creates the links to ..data for the files, unless the links exist.
func (t *fileTree) link(files map[string]render.File) error {
	for name := range topNames(files) {
		target := path.Join(dataLink, name)
		if oldTarget, err := t.dir.Readlink(name); err == nil && oldTarget == target {
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

// removeOld removes all entries of the tree except ..data, the links for the files, and the
// directory current.
func (t *fileTree) removeOld(current string, files map[string]render.File) error {
	names, err := t.dir.Names()
	if err != nil {
		return err
	}
	keep := topNames(files)
	keep[current], keep[dataLink] = true, true
	for _, name := range names {
		if keep[name] {
			continue
		}
		if err := t.dir.RemoveAll(context.Background(), name); err != nil {
			return err
		}
	}
	return nil
}
