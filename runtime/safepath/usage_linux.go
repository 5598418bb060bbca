package safepath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Usage is the disk usage of a tree or of one file.
type Usage struct {
	// Bytes is the allocated disk space of files and directories. A file with several names
	// is counted once.
	Bytes  int64
	Inodes int64
	// Excess describes the limit that stopped the measurement, for example "more than 1000
	// files and directories". The tree then uses at least Bytes. Excess is "" if everything
	// was counted.
	Excess string
}

// Usage returns the disk usage of d and of the tree below d within the mount. It stops when it has
// counted as many files and directories as limit allows. The tree may change during the
// measurement.
func (d *Dir) Usage(ctx context.Context, limit int) (Usage, error) {
	m := usageVisitor{limit: limit, countedLinks: map[inode]struct{}{}}
	if err := m.add(d.Fd(), ".", nil); err != nil {
		return Usage{}, d.pathError("measure", "", err)
	}
	err := walkBelow(ctx, d, &m, maxOpenLevels)
	switch {
	case errors.Is(err, errMoved):
		m.Excess, err = fmt.Sprintf("directories that are nested more than %d levels deep and that are moved while podd measures them", maxOpenLevels), nil
	case errors.Is(err, errLimitReached):
		m.Excess, err = fmt.Sprintf("more than %d files and directories", limit), nil
	}
	return m.Usage, err
}

// maxOpenLevels is the number of levels of directories that a measurement keeps open. If another
// process moves a directory in one of these levels, the measurement can still continue.
const maxOpenLevels = 256

var errLimitReached = errors.New("limit reached")

type inode struct {
	major, minor uint32
	ino          uint64
}

// A usageVisitor is a visitor that adds up the disk usage.
type usageVisitor struct {
	Usage
	limit, nameCount int
	countedLinks     map[inode]struct{} // counted files that have several names
}

func (m *usageVisitor) entry(fd int, name string, _ int) (dir bool, err error) {
	if m.nameCount++; m.nameCount > m.limit {
		return false, errLimitReached
	}
	err = m.add(fd, name, &dir)
	if err == unix.ENOENT {
		err = nil
	}
	return dir, err
}

// add counts one name, unless it is a mount point. Before Linux 5.8, statx does not report
// mount points, so a file that is mounted inside the tree is counted. dir is nil for the
// top directory; otherwise add stores in *dir whether name is a directory to visit.
func (m *usageVisitor) add(fd int, name string, dir *bool) error {
	var st unix.Statx_t
	const statxMask = unix.STATX_TYPE | unix.STATX_NLINK | unix.STATX_INO | unix.STATX_BLOCKS
	if err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, statxMask, &st); err != nil {
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
		if _, isCounted := m.countedLinks[key]; isCounted {
			return nil
		}
		m.countedLinks[key] = struct{}{}
	}
	m.Bytes += int64(st.Blocks) * 512
	m.Inodes++
	return nil
}

func (m *usageVisitor) afterDir(int, string) error { return nil }

// skipped ignores a directory that was removed, changed its type, or is on another file
// system. If the tree exceeds the limits of a walk, skipped records the limit in Excess.
func (m *usageVisitor) skipped(_ int, _ string, err error) error {
	switch {
	case errors.Is(err, errTooDeep):
		m.Excess = fmt.Sprintf("directories that are nested more than %d levels deep", maxDepth)
	case errors.Is(err, errTooMany):
		m.Excess = fmt.Sprintf("more than %d directories at one level", maxPending)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, ErrLink), errors.Is(err, ErrMount):
	default:
		return err
	}
	return nil
}
