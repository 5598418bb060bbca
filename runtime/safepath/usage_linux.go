package safepath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Usage is the disk usage of a tree.
type Usage struct {
	// Bytes on disk, including directories. A file with several names is counted once.
	Bytes  int64
	Inodes int64
	// Excess is the limit of a measurement that the tree exceeds, for example "more than
	// 1000 files and directories"; the tree uses Bytes or more then. It is "" if everything
	// was counted.
	Excess string
}

// Usage measures the tree below d and d itself within its mount, but at most limit names.
// The tree may change during the measurement.
func (d *Dir) Usage(ctx context.Context, limit int) (Usage, error) {
	m := measure{limit: limit, linked: map[inode]struct{}{}}
	if err := m.add(d.Fd(), ".", nil); err != nil {
		return Usage{}, d.pathError("measure", "", err)
	}
	err := walkBelow(ctx, d, &m, maxHeld)
	switch {
	case errors.Is(err, errMoved):
		m.Excess, err = fmt.Sprintf("directories that are nested more than %d levels deep and moved while they are measured", maxHeld), nil
	case errors.Is(err, errEnough):
		m.Excess, err = fmt.Sprintf("more than %d files and directories", limit), nil
	}
	return m.Usage, err
}

// maxHeld is how many levels a measurement keeps open. If a directory in these levels is
// moved, the measurement can continue.
const maxHeld = 256

var errEnough = errors.New("limit reached")

type inode struct {
	major, minor uint32
	ino          uint64
}

// measure adds up what it visits.
type measure struct {
	Usage
	limit, names int
	linked       map[inode]struct{} // files with several names that were counted already
}

func (m *measure) entry(fd int, name string, _ int) (dir bool, err error) {
	if m.names++; m.names > m.limit {
		return false, errEnough
	}
	err = m.add(fd, name, &dir)
	if err == unix.ENOENT {
		err = nil
	}
	return dir, err
}

// add counts one name, unless it is a mount point. Kernels before 5.8 do not report that,
// so a file mounted inside the tree is counted.
func (m *measure) add(fd int, name string, dir *bool) error {
	var st unix.Statx_t
	const want = unix.STATX_TYPE | unix.STATX_NLINK | unix.STATX_INO | unix.STATX_BLOCKS
	if err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, want, &st); err != nil {
		return err
	}
	if dir != nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return nil
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if dir != nil {
		*dir = isDir
	}
	if !isDir && st.Nlink > 1 {
		key := inode{st.Dev_major, st.Dev_minor, st.Ino}
		if _, seen := m.linked[key]; seen {
			return nil
		}
		m.linked[key] = struct{}{}
	}
	m.Bytes += int64(st.Blocks) * 512
	m.Inodes++
	return nil
}

func (m *measure) left(int, string) error { return nil }

// skipped ignores what was removed, changed its type, or is another file system. A tree
// that exceeds the limits of a walk is measured partly.
func (m *measure) skipped(_ int, _ string, err error) error {
	switch {
	case errors.Is(err, errDeep):
		m.Excess = fmt.Sprintf("directories that are nested more than %d levels deep", maxDepth)
	case errors.Is(err, errMany):
		m.Excess = fmt.Sprintf("more than %d directories side by side", maxPending)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, ErrLink), errors.Is(err, ErrMount):
	default:
		return err
	}
	return nil
}
