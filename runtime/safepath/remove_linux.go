package safepath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxPasses limits how often a tree is processed again because something was left for the
// next pass or was added during a pass.
const maxPasses = 1000

// RemoveAll removes name and everything below it within its mount. A missing name is not an
// error. It stops at the first error, which is ErrMount for a mount point, even if that is
// a file.
func (d *Dir) RemoveAll(ctx context.Context, name string) error {
	err := unix.Unlinkat(d.Fd(), name, 0)
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.EISDIR, unix.EPERM:
	default:
		return d.pathError("remove", name, busy(err))
	}
	sub, err := d.SubSameMount(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := sub.Empty(ctx); err != nil {
		return err
	}
	err = unix.Unlinkat(d.Fd(), name, unix.AT_REMOVEDIR)
	if err != nil && err != unix.ENOENT {
		return d.pathError("remove", name, busy(err))
	}
	return nil
}

// Empty removes everything below d as RemoveAll does, except the names in keep and d
// itself.
func (d *Dir) Empty(ctx context.Context, keep ...string) error {
	s := sweep{top: d.Fd(), keep: keep}
	for passes := 0; passes < maxPasses; passes++ {
		lifted := s.lifted
		s.again = false
		if err := walkBelow(ctx, d, &s, 0); err != nil || !s.again {
			return err
		}
		if s.lifted > lifted {
			passes = 0 // a very deep tree that gets smaller
		}
	}
	return d.pathError("empty", "", errors.New("something keeps adding files; end the process that does"))
}

// sweep removes what it visits.
type sweep struct {
	top    int
	keep   []string // only at the top
	again  bool     // another pass is needed
	lifted int      // directories moved to the top
}

func (s *sweep) entry(fd int, name string, depth int) (bool, error) {
	if depth == 0 && slices.Contains(s.keep, name) {
		return false, nil
	}
	err := unix.Unlinkat(fd, name, 0)
	if err == unix.EISDIR || err == unix.EPERM {
		err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	}
	switch err {
	case nil, unix.ENOENT:
		return false, nil
	case unix.ENOTEMPTY, unix.EEXIST:
		return true, nil
	}
	return false, busy(err)
}

func (s *sweep) left(fd int, name string) error {
	err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.ENOTEMPTY, unix.EEXIST:
		s.again = true
		return nil
	}
	return busy(err)
}

// skipped moves a directory that is too deep nearer to the top, for the next pass.
func (s *sweep) skipped(fd int, name string, err error) error {
	var errno unix.Errno
	switch {
	case errors.Is(err, errMany):
		s.again = true
		return nil
	case errors.Is(err, errDeep):
		s.again = true
		return s.lift(fd, name)
	case errors.Is(err, ErrMount):
		return err
	case errors.As(err, &errno) && errno == unix.ENOENT:
		return nil
	case errors.Is(err, ErrLink), errors.As(err, &errno) && errno == unix.ENOTDIR:
		s.again = true // changed during the pass
		return nil
	}
	return err
}

func (s *sweep) lift(fd int, name string) error {
	for {
		s.lifted++
		err := unix.Renameat2(fd, name, s.top, ".removing."+strconv.Itoa(s.lifted), unix.RENAME_NOREPLACE)
		if err == unix.EEXIST {
			continue
		}
		if err != nil && err != unix.ENOENT {
			return fmt.Errorf("too deep to remove in place: %w", busy(err))
		}
		return nil
	}
}

// busy returns ErrMount for EBUSY, because unlinkat(2) returns that only for a mount point
// on the file systems that pods use.
func busy(err error) error {
	if err == unix.EBUSY {
		return ErrMount
	}
	return err
}
