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

// maxPasses limits the passes over a tree. Another pass is needed if the last pass skipped a
// directory, or if files were created during the last pass.
const maxPasses = 1000

// RemoveAll removes the file or directory with a name in d, and everything below it. It
// returns nil if the name does not exist. It stops at the first error. It does not remove
// mount points and returns ErrMount for them, even if the mount point is a file.
func (d *Dir) RemoveAll(ctx context.Context, name string) error {
	err := unix.Unlinkat(d.Fd(), name, 0)
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.EISDIR, unix.EPERM:
	default:
		return d.pathError("remove", name, replaceBusy(err))
	}
	sub, err := d.SubSameMount(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := sub.RemoveContents(ctx); err != nil {
		return err
	}
	err = unix.Unlinkat(d.Fd(), name, unix.AT_REMOVEDIR)
	if err != nil && err != unix.ENOENT {
		return d.pathError("remove", name, replaceBusy(err))
	}
	return nil
}

// RemoveContents removes everything in d, as RemoveAll does. It keeps the files and directories
// with names in the list keep. It does not remove d.
func (d *Dir) RemoveContents(ctx context.Context, keep ...string) error {
	s := removeVisitor{topFD: d.Fd(), keep: keep}
	for passes := 0; passes < maxPasses; passes++ {
		lifted := s.movedCount
		s.needsAnotherPass = false
		if err := walkBelow(ctx, d, &s, 0); err != nil || !s.needsAnotherPass {
			return err
		}
		if s.movedCount > lifted {
			passes = 0 // start to count again, because the depth of the tree has decreased
		}
	}
	return d.pathError("remove the contents of", "", errors.New("a process keeps creating files; stop that process"))
}

// A removeVisitor is a visitor that removes all files and directories that it visits.
type removeVisitor struct {
	topFD            int
	keep             []string // names at the top level that must not be removed
	needsAnotherPass bool
	movedCount       int // number of directories that were moved to the top directory
}

func (s *removeVisitor) entry(fd int, name string, depth int) (bool, error) {
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
	return false, replaceBusy(err)
}

func (s *removeVisitor) afterDir(fd int, name string) error {
	err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.ENOTEMPTY, unix.EEXIST:
		s.needsAnotherPass = true
		return nil
	}
	return replaceBusy(err)
}

// skipped moves a directory that is too deep in the tree to the top directory, so that the next
// pass removes it.
func (s *removeVisitor) skipped(fd int, name string, err error) error {
	var errno unix.Errno
	switch {
	case errors.Is(err, errTooMany):
		s.needsAnotherPass = true
		return nil
	case errors.Is(err, errTooDeep):
		s.needsAnotherPass = true
		return s.moveToTop(fd, name)
	case errors.Is(err, ErrMount):
		return err
	case errors.As(err, &errno) && errno == unix.ENOENT:
		return nil
	case errors.Is(err, ErrLink), errors.As(err, &errno) && errno == unix.ENOTDIR:
		s.needsAnotherPass = true // visit the name again, because the directory was replaced by another type of file during the pass
		return nil
	}
	return err
}

// moveToTop moves a directory to the top directory, under a new name.
func (s *removeVisitor) moveToTop(fd int, name string) error {
	for {
		s.movedCount++
		err := unix.Renameat2(fd, name, s.topFD, ".removing."+strconv.Itoa(s.movedCount), unix.RENAME_NOREPLACE)
		if err == unix.EEXIST {
			continue
		}
		if err != nil && err != unix.ENOENT {
			return fmt.Errorf("moving up a deeply nested directory before its removal: %w", replaceBusy(err))
		}
		return nil
	}
}

// replaceBusy replaces EBUSY by ErrMount. On the file systems that pods use, unlinkat(2) returns
// EBUSY only for mount points.
func replaceBusy(err error) error {
	if err == unix.EBUSY {
		return ErrMount
	}
	return err
}
