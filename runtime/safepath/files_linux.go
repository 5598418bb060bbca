package safepath

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// HasFiles reports whether the tree below d contains anything except directories: a file, a
// link or a mount point. It also returns true if the tree is too deep or wide to search.
func (d *Dir) HasFiles(ctx context.Context) (bool, error) {
	err := walkBelow(ctx, d, searchVisitor{}, 0)
	if errors.Is(err, errFound) || errors.Is(err, errMoved) {
		return true, nil
	}
	return false, err
}

var errFound = errors.New("found a file")

// searchVisitor stops a walk with errFound at the first name that is not a plain directory.
type searchVisitor struct{}

func (searchVisitor) entry(fd int, name string, _ int) (dir bool, err error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &st); err != nil {
		return false, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return false, errFound
	}
	return true, nil
}

func (searchVisitor) afterDir(int, string) error { return nil }

func (searchVisitor) skipped(_ int, _ string, err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return errFound
}
