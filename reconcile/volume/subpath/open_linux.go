package subpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// Open opens a file or directory of a volume. volume is the host path of the volume, and path is
// relative to it. Open follows only links within the volume. If create is true and path does not
// exist, Open creates a directory. The caller must close the result, which can be passed to Bind.
func Open(volume, path string, create bool) (*os.File, error) {
	vol, err := safepath.Open(volume)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, errors.New("the volume is a file, not a directory; mount it without a subPath")
	}
	// The host path may be missing, because the path of a hostPath without a type was not checked
	// before.
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the volume's host path %s does not exist; create it, or use type DirectoryOrCreate", volume)
	}
	if err != nil {
		return nil, err
	}
	defer vol.Close()
	f, err := follow(vol, path, vol.Follow)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if !create {
		return nil, errors.New("the volume does not contain this file; add the key, or correct the subPath")
	}
	if err := mkdirAll(vol, path); err != nil {
		return nil, err
	}
	return follow(vol, path, vol.Follow)
}

// follow calls open with name, a path in the volume vol. If name contains an absolute symbolic link
// to a path within the volume, follow calls open again with the target of the link, relative to the
// volume.
func follow[T any](vol *safepath.Dir, name string, open func(string) (T, error)) (T, error) {
	result, err := open(name)
	if !errors.Is(err, safepath.ErrOutside) {
		return result, err
	}
	volPath, volErr := filepath.EvalSymlinks(vol.Path())
	target, targetErr := filepath.EvalSymlinks(filepath.Join(vol.Path(), name))
	if errors.Is(targetErr, fs.ErrNotExist) {
		return result, fs.ErrNotExist // the caller checks whether an existing parent is in the volume
	}
	if rel, relErr := filepath.Rel(volPath, target); volErr == nil && targetErr == nil && relErr == nil && filepath.IsLocal(rel) {
		return open(rel)
	}
	return result, err
}

// mkdirAll creates a directory of a volume and its parents, with the mode and the group of the
// volume.
func mkdirAll(vol *safepath.Dir, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(vol.Fd(), &st); err != nil {
		return err
	}
	gid := -1
	if st.Mode&unix.S_ISGID != 0 {
		gid = int(st.Gid)
	}
	parent, missingNames, err := openDeepest(vol, strings.Split(path, "/"))
	if err != nil {
		return err
	}
	for _, name := range missingNames {
		_, err := parent.Mkdir(name, st.Mode&(0o777|unix.S_ISGID|unix.S_ISVTX), gid)
		var dir *safepath.Dir
		if err == nil {
			dir, err = parent.Sub(name)
		}
		parent.Close()
		if err != nil {
			return err
		}
		parent = dir
	}
	return parent.Close()
}

// openDeepest opens the deepest existing directory of a path in a volume. names contains the
// elements of the path. missingNames contains the elements that do not exist.
func openDeepest(vol *safepath.Dir, names []string) (dir *safepath.Dir, missingNames []string, err error) {
	for n := len(names) - 1; ; n-- {
		dir, err := follow(vol, filepath.Join(append([]string{"."}, names[:n]...)...), vol.FollowDir)
		if err == nil {
			return dir, names[n:], nil
		}
		if n == 0 || !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
}
