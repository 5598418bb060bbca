package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// File opens a regular file below d for reading. Anything else is refused
// before it is opened: opening a device node can already have effects.
func (d *Dir) File(name string) (*os.File, error) {
	return d.regular(name, unix.O_RDONLY)
}

// Create makes a new file with exactly this mode; fs.ErrExist when there is
// anything of that name, be it a link.
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

// regular looks before it opens: the first descriptor only holds the place, so
// that what is opened through it is what was looked at.
func (d *Dir) regular(name string, flags int) (*os.File, error) {
	held, err := openat(d.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0, 0)
	if err != nil {
		return nil, d.pathError("open", name, err)
	}
	defer unix.Close(held)
	var st unix.Stat_t
	if err := unix.Fstat(held, &st); err != nil {
		return nil, d.pathError("open", name, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFLNK:
		return nil, d.pathError("open", name, ErrLink)
	default:
		return nil, d.pathError("open", name, ErrNotRegular)
	}
	// Without O_NONBLOCK, a lease that somebody holds on the file blocks this.
	fd, err := retry(func() (int, error) {
		return unix.Open(fmt.Sprintf("/proc/self/fd/%d", held), flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, d.pathError("open", name, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.Path(), name)), nil
}

// Stat tells of a regular file without opening it; anything else is refused.
func (d *Dir) Stat(name string) (size int64, modified time.Time, err error) {
	held, err := openat(d.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0, 0)
	if err != nil {
		return 0, time.Time{}, d.pathError("stat", name, err)
	}
	defer unix.Close(held)
	var st unix.Stat_t
	if err := unix.Fstat(held, &st); err != nil {
		return 0, time.Time{}, d.pathError("stat", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, time.Time{}, d.pathError("stat", name, ErrNotRegular)
	}
	return st.Size, time.Unix(st.Mtim.Unix()), nil
}

// Readlink is what a link holds; an error for anything else.
func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(d.Fd(), name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Rename gives what is called from, right in d, another name there; what had
// that name is gone.
func (d *Dir) Rename(from, to string) error {
	if filepath.Base(from) != from || filepath.Base(to) != to || !filepath.IsLocal(from) || !filepath.IsLocal(to) {
		return d.pathError("rename", from, fs.ErrInvalid)
	}
	if err := unix.Renameat(d.Fd(), from, d.Fd(), to); err != nil {
		return d.pathError("rename", from, err)
	}
	return nil
}

// Remove unlinks one name that is not a directory; already gone is nil.
func (d *Dir) Remove(name string) error {
	at, err := d.sub(filepath.Dir(name), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer at.Close()
	err = unix.Unlinkat(at.Fd(), filepath.Base(name), 0)
	if err != nil && err != unix.ENOENT {
		return d.pathError("remove", name, err)
	}
	return nil
}

func openat(dir int, name string, flags int, mode uint32, extra uint64) (int, error) {
	if !filepath.IsLocal(name) {
		return -1, fs.ErrInvalid
	}
	return retry(func() (int, error) {
		return unix.Openat2(dir, name, &unix.OpenHow{
			Flags:   uint64(flags | unix.O_CLOEXEC),
			Mode:    uint64(mode),
			Resolve: resolve | extra,
		})
	})
}

// retry repeats what a signal interrupted, or what raced with a rename on a
// path with "..": the kernel asks for the latter with EAGAIN.
func retry(open func() (int, error)) (int, error) {
	for tries := 0; ; tries++ {
		fd, err := open()
		if err == unix.EINTR || err == unix.EAGAIN && tries < 32 {
			continue
		}
		return fd, err
	}
}

func (d *Dir) pathError(op, name string, err error) error {
	return pathError(op, filepath.Join(d.Path(), name), err)
}

// pathError puts the errors of this package in words.
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
