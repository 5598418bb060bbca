// Package safepath accesses files below a directory to which containers can write. At any time a
// container may create a symbolic link to a file of the host there, a device node with side effects
// on open, a FIFO that blocks, or a tree that is too deep for recursion. The package protects a
// process that runs as root against all of these.
//
//	Open(path) ──▶ Dir ──┬─ Sub, Mkdir                     a directory below
//	  trusted            ├─ OpenFile, OpenFileReadWrite,
//	                     │  Create                         a regular file below
//	                     ├─ Follow                         any file, through links that stay below
//	                     └─ RemoveContents, RemoveAll,
//	                        Usage                          the whole tree
//
// The path given to Open is trusted and its links are followed. Every name below the
// directory is resolved by openat2, which does not leave the directory. Only Follow and
// FollowDir follow links. Functions that process a tree never cross a mount point. A name
// may have several elements ("a/b"). Linux 5.6 or later is required.
//
// A Dir is safe for concurrent use, but Close must not be called before all other calls
// have returned.
package safepath

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Errors that callers distinguish, in addition to fs.ErrNotExist. The returned error is an
// *fs.PathError that contains the path and wraps one of these errors.
var (
	// ErrLink means that the path is or passes through a symbolic link, and the function
	// does not follow links.
	ErrLink = errors.New("the path contains a symbolic link, which podd does not follow")
	// ErrOutside means that a symbolic link leads out of the directory, or may lead out of it.
	ErrOutside = errors.New("the path contains a symbolic link that leads out of the directory")
	// ErrMount means that the path is or crosses a mount point.
	ErrMount = errors.New("is a mount point")
	// ErrNotRegular means that the path is not a regular file.
	ErrNotRegular = errors.New("is not a regular file")
)

// resolveFlags contains the openat2 flags for every name below a Dir.
const resolveFlags = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// A Dir is an open directory. The zero value is not usable.
type Dir struct{ f *os.File }

// Open opens the directory at path. Users other than root must not be able to change the
// directories of path, because Open follows links in path.
func Open(path string) (*Dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return &Dir{os.NewFile(uintptr(fd), path)}, nil
}

// Names returns the sorted names in the directory at path, or none if path is not a directory.
// Users other than root must not be able to change the directories of path, because Names follows
// links in path.
func Names(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Close releases the descriptor.
func (d *Dir) Close() error { return d.f.Close() }

// Path returns the path of the directory, for messages.
func (d *Dir) Path() string { return d.f.Name() }

// Fd returns the file descriptor of the directory, which is valid until Close.
func (d *Dir) Fd() int { return int(d.f.Fd()) }

// Sub opens a directory below d. It may cross mount points.
func (d *Dir) Sub(name string) (*Dir, error) { return d.sub(name, 0) }

// SubSameMount opens a directory below d. It returns ErrMount instead of crossing a mount
// point.
func (d *Dir) SubSameMount(name string) (*Dir, error) {
	return d.sub(name, unix.RESOLVE_NO_XDEV)
}

// sub works like Sub, with additional RESOLVE_ flags of openat2.
func (d *Dir) sub(name string, extraResolve uint64) (*Dir, error) {
	fd, err := openat(d.Fd(), name, unix.O_RDONLY|unix.O_DIRECTORY, 0, extraResolve)
	if err != nil {
		return nil, d.pathError("open", name, err)
	}
	return &Dir{os.NewFile(uintptr(fd), filepath.Join(d.Path(), name))}, nil
}

// Names returns the names in d, unsorted.
func (d *Dir) Names() ([]string, error) {
	fd, err := openat(d.Fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0, 0)
	if err != nil {
		return nil, d.pathError("list", "", err)
	}
	f := os.NewFile(uintptr(fd), d.Path())
	defer f.Close()
	return f.Readdirnames(-1)
}

// Mode returns the type and permissions of the file with a name below d. For a symbolic
// link it returns fs.ModeSymlink.
func (d *Dir) Mode(name string) (fs.FileMode, error) {
	fd, err := openat(d.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0, 0)
	if errors.Is(err, unix.ELOOP) {
		return fs.ModeSymlink, nil
	}
	if err != nil {
		return 0, d.pathError("stat", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, d.pathError("stat", name, err)
	}
	return info.Mode(), nil
}

// Mkdir creates one directory with exactly the given mode, whatever the umask. If gid is
// negative, the directory gets the group of the process. isNew is false if the directory existed
// already; Mkdir does not change such a directory.
//
// If the process is killed during Mkdir, a directory with a temporary name can remain. This
// is only possible if gid is not negative or mode has permissions outside of plainMode.
// Otherwise the directory can remain without the permissions that the umask removes.
func (d *Dir) Mkdir(name string, mode uint32, gid int) (isNew bool, err error) {
	parent, err := d.sub(filepath.Dir(name), 0)
	if err != nil {
		return false, err
	}
	defer parent.Close()
	base := filepath.Base(name)
	if sub, err := parent.Sub(base); err == nil {
		return false, sub.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if gid < 0 && mode&^plainMode == 0 {
		err = parent.mkdirInPlace(base, mode)
	} else {
		err = parent.mkdir(base, mode, gid)
	}
	if err == nil {
		return true, nil
	}
	// Another process may have created the directory first.
	if sub, openErr := parent.Sub(base); openErr == nil {
		return false, sub.Close()
	}
	return false, err
}

// plainMode contains the permissions that mkdirat(2) grants under the usual umask, 022.
const plainMode = 0o755

// mkdirInPlace creates the directory directly with its final name and mode, so that a crash leaves
// no temporary directory. This is important in parent directories that are never removed, such as
// the directory of all pods.
func (d *Dir) mkdirInPlace(name string, mode uint32) error {
	if err := unix.Mkdirat(d.Fd(), name, mode); err != nil {
		return d.pathError("create", name, err)
	}
	sub, err := d.SubSameMount(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	var st unix.Stat_t
	if err := unix.Fstat(sub.Fd(), &st); err != nil {
		return d.pathError("stat", name, err)
	}
	if st.Mode&0o7777 == mode {
		return nil
	}
	// Chmod is necessary because mkdirat applies the umask and the directory may inherit the setgid
	// bit.
	if err := unix.Fchmod(sub.Fd(), mode); err != nil {
		return d.pathError("create", name, err)
	}
	return nil
}

// mkdir creates the directory under a temporary name and renames it. After a crash the final name
// therefore never has the wrong mode or group. The temporary name is random, so no container can
// have created a file with this name. mkdir returns an error if the final name exists.
func (d *Dir) mkdir(name string, mode uint32, gid int) error {
	temp := ".new." + rand.Text()
	if err := unix.Mkdirat(d.Fd(), temp, 0o700); err != nil {
		return d.pathError("create", name, err)
	}
	sub, err := d.SubSameMount(temp)
	if err != nil {
		return err
	}
	defer sub.Close()
	if gid >= 0 {
		err = unix.Fchown(sub.Fd(), -1, gid)
	}
	if err == nil {
		err = unix.Fchmod(sub.Fd(), mode) // must follow chown, which may clear setgid
	}
	if err == nil {
		err = unix.Renameat2(d.Fd(), temp, d.Fd(), name, unix.RENAME_NOREPLACE)
	}
	if err == unix.EINVAL { // the file system, for example NFS, does not support the flag
		err = unix.Renameat(d.Fd(), temp, d.Fd(), name)
	}
	if err != nil {
		_ = unix.Unlinkat(d.Fd(), temp, unix.AT_REMOVEDIR) // ignore errors, because a remaining directory does no harm
		return d.pathError("create", name, err)
	}
	return nil
}
