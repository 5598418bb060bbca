package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// OpenFile opens a regular file below d for reading. For other types it returns ErrLink or
// ErrNotRegular without opening the file, because opening a device node can have side effects.
func (d *Dir) OpenFile(name string) (*os.File, error) {
	return d.openRegular(name, unix.O_RDONLY)
}

// OpenFileReadWrite works like OpenFile, but opens the file for reading and writing.
func (d *Dir) OpenFileReadWrite(name string) (*os.File, error) {
	return d.openRegular(name, unix.O_RDWR)
}

// Create creates a regular file with exactly the given mode. It returns fs.ErrExist if the
// name exists, even if the name is a symbolic link.
func (d *Dir) Create(name string, mode uint32) (*os.File, error) {
	fd, err := openat(d.Fd(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600, 0)
	if err != nil {
		return nil, d.pathError("create", name, err)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(d.Path(), name))
	if err := unix.Fchmod(fd, mode); err != nil {
		f.Close()
		return nil, d.pathError("create", name, err)
	}
	return f, nil
}

// openRegular opens a regular file. It returns an error for other types. It checks the type and opens
// the file through one O_PATH descriptor, so that the opened file is always the checked file.
func (d *Dir) openRegular(name string, flags int) (*os.File, error) {
	pathFD, err := openat(d.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0, 0)
	if err != nil {
		return nil, d.pathError("open", name, err)
	}
	defer unix.Close(pathFD)
	return d.reopenRegular(pathFD, name, flags)
}

// reopenRegular opens the file to which the O_PATH descriptor pathFD refers. It returns an error if
// the file is not a regular file. name is the name of the file, for errors.
func (d *Dir) reopenRegular(pathFD int, name string, flags int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(pathFD, &st); err != nil {
		return nil, d.pathError("open", name, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFLNK:
		return nil, d.pathError("open", name, ErrLink)
	default:
		return nil, d.pathError("open", name, ErrNotRegular)
	}
	// Use O_NONBLOCK, because otherwise open would wait until a lease on the file is released.
	fd, err := retry(func() (int, error) {
		return unix.Open(fmt.Sprintf("/proc/self/fd/%d", pathFD), flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, d.pathError("open", name, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.Path(), name)), nil
}

// Stat returns the size and modification time of a regular file without opening the file.
// It returns ErrNotRegular for other types.
func (d *Dir) Stat(name string) (size int64, modified time.Time, err error) {
	st, err := d.statRegular(name)
	if err != nil {
		return 0, time.Time{}, err
	}
	return st.Size, time.Unix(st.Mtim.Unix()), nil
}

// FileUsage returns the disk usage of a regular file. It returns ErrNotRegular for other
// types.
func (d *Dir) FileUsage(name string) (Usage, error) {
	st, err := d.statRegular(name)
	if err != nil {
		return Usage{}, err
	}
	return Usage{Bytes: st.Blocks * 512, Inodes: 1}, nil
}

// statRegular returns the status of a regular file, or ErrNotRegular for other types.
func (d *Dir) statRegular(name string) (st unix.Stat_t, err error) {
	pathFD, err := openat(d.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0, 0)
	if err != nil {
		return st, d.pathError("stat", name, err)
	}
	defer unix.Close(pathFD)
	if err := unix.Fstat(pathFD, &st); err != nil {
		return st, d.pathError("stat", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return st, d.pathError("stat", name, ErrNotRegular)
	}
	return st, nil
}

// Readlink returns the target of a symbolic link. It returns an error for other types.
func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(d.Fd(), name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Rename renames a file in d and replaces the file with the new name, if there is one.
// oldName and newName must have one element.
func (d *Dir) Rename(oldName, newName string) error { return d.rename(oldName, newName, 0) }

// RenameNoReplace works like Rename, but returns fs.ErrExist if newName exists. On file systems
// that do not support this check, such as NFS, it replaces newName.
func (d *Dir) RenameNoReplace(oldName, newName string) error {
	err := d.rename(oldName, newName, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) {
		return d.rename(oldName, newName, 0)
	}
	return err
}

func (d *Dir) rename(from, to string, flags uint) error {
	if filepath.Base(from) != from || filepath.Base(to) != to || !filepath.IsLocal(from) || !filepath.IsLocal(to) {
		return d.pathError("rename", from, fs.ErrInvalid)
	}
	if err := unix.Renameat2(d.Fd(), from, d.Fd(), to, flags); err != nil {
		return d.pathError("rename", from, err)
	}
	return nil
}

// Remove removes a file that is not a directory. It returns nil if the name does not exist.
func (d *Dir) Remove(name string) error {
	parent, err := d.sub(filepath.Dir(name), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	err = unix.Unlinkat(parent.Fd(), filepath.Base(name), 0)
	if err != nil && err != unix.ENOENT {
		return d.pathError("remove", name, err)
	}
	return nil
}

// openat opens a file below dir with openat2. extraResolve contains RESOLVE_ flags in addition to
// those for every name.
func openat(dir int, name string, flags int, mode uint32, extraResolve uint64) (int, error) {
	if !filepath.IsLocal(name) {
		return -1, fs.ErrInvalid
	}
	return retry(func() (int, error) {
		return unix.Openat2(dir, name, &unix.OpenHow{
			Flags:   uint64(flags | unix.O_CLOEXEC),
			Mode:    uint64(mode),
			Resolve: resolveFlags | extraResolve,
		})
	})
}

// retry calls openFile again after EINTR and EAGAIN. openat2 returns EAGAIN if another process
// renamed a directory while ".." was resolved.
func retry(openFile func() (int, error)) (int, error) {
	for tries := 0; ; tries++ {
		fd, err := openFile()
		if err == unix.EINTR || err == unix.EAGAIN && tries < 32 {
			continue
		}
		return fd, err
	}
}

func (d *Dir) pathError(op, name string, err error) error {
	return pathError(op, filepath.Join(d.Path(), name), err)
}

// pathError returns an *fs.PathError for err. It replaces ELOOP by ErrLink, EXDEV by
// ErrMount, and ENOSYS by an error that names the required version of Linux.
func pathError(op, path string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		err = ErrLink
	case errors.Is(err, unix.EXDEV):
		err = ErrMount
	case errors.Is(err, unix.ENOSYS):
		err = errors.New("the kernel lacks openat2; podd needs Linux 5.6 or later")
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
