// Package safepath accesses files below a directory to which containers can write. At any
// time a container may create there a symbolic link to a file of the host, a device node
// with side effects on open, a FIFO that blocks, or a tree too deep for recursion. None of
// these may deceive a process of root.
//
//	Open(path) ──▶ Dir ──┬─ Sub, Mkdir     a directory below
//	  trusted            ├─ File, Update, Create   a regular file below
//	                     ├─ Follow         anything, through links that stay below
//	                     └─ Empty, RemoveAll, Usage   the whole tree
//
// The path given to Open is trusted and its links are followed. Every name below it is
// resolved by openat2 without leaving the directory and, except for Follow and FollowDir,
// without following links. Functions that process a tree never cross a mount point either.
// A name may have several elements ("a/b"). Linux 5.6 or later is required.
//
// A Dir is safe for concurrent use, but Close must be called after all other calls.
package safepath

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Errors that callers distinguish, in addition to fs.ErrNotExist. Each is wrapped in an
// *fs.PathError with the path.
var (
	// ErrLink: there is a symbolic link, and the function does not follow links.
	ErrLink = errors.New("is or passes through a symbolic link, and podd follows none here")
	// ErrOutside: a symbolic link leads out of the directory, or may do so.
	ErrOutside = errors.New("is or passes through a symbolic link that leads out of the directory")
	// ErrMount: it is a mount point.
	ErrMount = errors.New("is a mount point")
	// ErrNotRegular: it is not a regular file.
	ErrNotRegular = errors.New("is not a regular file")
)

// resolve contains the openat2 flags for every name below a Dir.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// A Dir is an open directory. The zero value is not usable.
type Dir struct{ f *os.File }

// Open opens a directory with a path that only root can change.
func Open(path string) (*Dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return &Dir{os.NewFile(uintptr(fd), path)}, nil
}

// Names returns the sorted names in a directory with a path that only root can change;
// none if there is no directory.
func Names(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}

// Close releases the descriptor.
func (d *Dir) Close() error { return d.f.Close() }

// Path returns the path with which the directory was opened, for messages.
func (d *Dir) Path() string { return d.f.Name() }

// Fd returns the descriptor, which is valid until Close.
func (d *Dir) Fd() int { return int(d.f.Fd()) }

// Sub opens a directory below d. It crosses mount points.
func (d *Dir) Sub(name string) (*Dir, error) { return d.sub(name, 0) }

// SubSameMount is Sub, but returns ErrMount if it would cross a mount point.
func (d *Dir) SubSameMount(name string) (*Dir, error) {
	return d.sub(name, unix.RESOLVE_NO_XDEV)
}

func (d *Dir) sub(name string, extra uint64) (*Dir, error) {
	fd, err := openat(d.Fd(), name, unix.O_RDONLY|unix.O_DIRECTORY, 0, extra)
	if err != nil {
		return nil, d.pathError("open", name, err)
	}
	return &Dir{os.NewFile(uintptr(fd), filepath.Join(d.Path(), name))}, nil
}

// Names returns the names in the directory, unsorted.
func (d *Dir) Names() ([]string, error) {
	fd, err := openat(d.Fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0, 0)
	if err != nil {
		return nil, d.pathError("list", "", err)
	}
	f := os.NewFile(uintptr(fd), d.Path())
	defer f.Close()
	return f.Readdirnames(-1)
}

// Mode returns the type of a name. It does not follow a link.
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

// Mkdir creates one directory with exactly this mode, whatever the umask. A gid below 0
// means that of the process. made is false if the directory exists already; then it is not
// changed. If the process is killed meanwhile, either the directory does not exist, or a
// directory with a temporary name remains, or the directory lacks permissions that the
// umask takes away. The second is possible only with a gid or with permissions outside of
// plainMode.
func (d *Dir) Mkdir(name string, mode uint32, gid int) (made bool, err error) {
	at, err := d.sub(filepath.Dir(name), 0)
	if err != nil {
		return false, err
	}
	defer at.Close()
	base := filepath.Base(name)
	if sub, err := at.Sub(base); err == nil {
		return false, sub.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if gid < 0 && mode&^plainMode == 0 {
		err = at.mkdirPlain(base, mode)
	} else {
		err = at.mkdir(base, mode, gid)
	}
	if err == nil {
		return true, nil
	}
	// Another process may have created it first.
	if sub, there := at.Sub(base); there == nil {
		return false, sub.Close()
	}
	return false, err
}

// plainMode has the permissions that mkdirat(2) grants under the usual umask, 022.
const plainMode = 0o755

// mkdirPlain creates the directory with its final name and mode at once, so that nothing
// remains of a crash. This is important in directories that are never removed, such as
// those of all pods and of all logs.
func (d *Dir) mkdirPlain(name string, mode uint32) error {
	if err := unix.Mkdirat(d.Fd(), name, mode); err != nil {
		return d.pathError("make", name, err)
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
	if err := unix.Fchmod(sub.Fd(), mode); err != nil { // a stricter umask or an inherited setgid bit
		return d.pathError("make", name, err)
	}
	return nil
}

// mkdir creates the directory under a temporary name, so that a crash leaves nothing that
// looks complete. The name is random, so a container cannot have created it before; an
// existing name is an error.
func (d *Dir) mkdir(name string, mode uint32, gid int) error {
	temp := ".new." + rand.Text()
	if err := unix.Mkdirat(d.Fd(), temp, 0o700); err != nil {
		return d.pathError("make", name, err)
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
		err = unix.Fchmod(sub.Fd(), mode) // after chown, which may clear setgid
	}
	if err == nil {
		err = unix.Renameat2(d.Fd(), temp, d.Fd(), name, unix.RENAME_NOREPLACE)
	}
	if err == unix.EINVAL { // a file system without that flag, such as NFS
		err = unix.Renameat(d.Fd(), temp, d.Fd(), name)
	}
	if err != nil {
		_ = unix.Unlinkat(d.Fd(), temp, unix.AT_REMOVEDIR) // harmless if it remains
		return d.pathError("make", name, err)
	}
	return nil
}
