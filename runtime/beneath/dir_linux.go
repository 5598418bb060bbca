// Package beneath reaches what lies below a directory that containers can
// write to. A container may plant there, at any moment, a symbolic link to the
// host's files, a device node whose mere opening has effects, a FIFO that
// blocks, or a tree too deep to recurse into; root must be fooled by none.
//
//	Open(path) ──▶ Dir ──┬─ Sub, Mkdir     a directory below
//	  trusted            ├─ File, Create   a regular file below
//	                     ├─ Follow         anything, through links that stay below
//	                     └─ Empty, RemoveAll, Usage   the whole tree
//
// The path given to Open is trusted and its links are followed. Every name
// below it is resolved by openat2 without leaving the directory and, but for
// Follow and FollowDir, without following any link; what sweeps a tree never
// crosses a mount point either. A name may have several elements ("a/b"). Linux
// 5.6 or later.
//
// A Dir may be used by several goroutines; Close comes after all other calls.
package beneath

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What callers branch on, beside fs.ErrNotExist; each comes in an
// *fs.PathError that names the path.
var (
	// ErrLink: a symbolic link stands where none is followed.
	ErrLink = errors.New("is or passes through a symbolic link, and podd follows none here")
	// ErrOutside: a symbolic link leads out of the directory, or may.
	ErrOutside = errors.New("is or passes through a symbolic link that leads out of the directory")
	// ErrMount: something is mounted there.
	ErrMount = errors.New("is a mount point")
	// ErrNotRegular: not a regular file.
	ErrNotRegular = errors.New("is not a regular file")
)

// resolve is how every name below a Dir is looked up.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// Dir is an open directory. The zero value is not usable.
type Dir struct{ f *os.File }

// Open opens a directory whose path nobody but root can change.
func Open(path string) (*Dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return &Dir{os.NewFile(uintptr(fd), path)}, nil
}

// Names lists a directory whose path nobody but root can change, by name; none where
// there is no directory.
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

// Path is where the directory was opened, for messages.
func (d *Dir) Path() string { return d.f.Name() }

// Fd is the descriptor, valid until Close.
func (d *Dir) Fd() int { return int(d.f.Fd()) }

// Sub opens a directory below d; a mount point is entered.
func (d *Dir) Sub(name string) (*Dir, error) { return d.sub(name, 0) }

// SubSameMount is Sub, and ErrMount where that would cross a mount point.
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

// Names lists the directory, unsorted.
func (d *Dir) Names() ([]string, error) {
	fd, err := openat(d.Fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0, 0)
	if err != nil {
		return nil, d.pathError("list", "", err)
	}
	f := os.NewFile(uintptr(fd), d.Path())
	defer f.Close()
	return f.Readdirnames(-1)
}

// Mode is the type of what name is, a link itself and not what it points to.
func (d *Dir) Mode(name string) (fs.FileMode, error) {
	fd, err := openat(d.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0, 0)
	if errors.Is(err, unix.ELOOP) {
		return fs.ModeSymlink, nil
	}
	if err != nil {
		return 0, d.pathError("look at", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, d.pathError("look at", name, err)
	}
	return info.Mode(), nil
}

// Mkdir makes one directory with exactly this mode, whatever the umask; made
// is false when a directory was there already, whose mode is then left alone.
// It appears under its name only once its mode is right.
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
	err = at.mkdir(base, mode, gid)
	if err == nil {
		return true, nil
	}
	// Somebody else may have been quicker.
	if sub, there := at.Sub(base); there == nil {
		return false, sub.Close()
	}
	return false, err
}

// mkdir prepares the directory under a name that no caller uses, so that a
// crash half-way leaves nothing that looks finished, and that no container can
// have put there before: what is there already is not taken.
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
	if err == unix.EINVAL { // a file system without that flag, as NFS
		err = unix.Renameat(d.Fd(), temp, d.Fd(), name)
	}
	if err != nil {
		_ = unix.Unlinkat(d.Fd(), temp, unix.AT_REMOVEDIR) // in nobody's way if it stays
		return d.pathError("make", name, err)
	}
	return nil
}
