package beneath

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// Usage is the disk space of a tree.
type Usage struct {
	// Bytes on disk, directories included; a file with several names counts
	// once.
	Bytes  int64
	Inodes int64
	// Partial says that the tree was beyond what is looked at, so that it uses
	// this much or more.
	Partial bool
}

// Usage adds up the tree below d and d itself, within its mount, looking at no
// more than limit names. The tree may change meanwhile.
func (d *Dir) Usage(ctx context.Context, limit int) (Usage, error) {
	m := measure{budget: limit, linked: map[inode]struct{}{}}
	if err := m.add(d.Fd(), ".", nil); err != nil {
		return Usage{}, d.pathError("measure", "", err)
	}
	err := walkBelow(ctx, d, &m)
	switch {
	case errors.Is(err, errMoved):
		m.Partial, err = true, nil
	case errors.Is(err, errEnough):
		err = nil
	}
	return m.Usage, err
}

var errEnough = errors.New("limit reached")

type inode struct {
	major, minor uint32
	ino          uint64
}

// measure adds up what it visits.
type measure struct {
	Usage
	budget int
	linked map[inode]struct{} // files with several names seen so far
}

func (m *measure) entry(fd int, name string, _ int) (dir bool, err error) {
	if m.budget--; m.budget < 0 {
		m.Partial = true
		return false, errEnough
	}
	err = m.add(fd, name, &dir)
	if err == unix.ENOENT {
		err = nil
	}
	return dir, err
}

// add counts one name, unless something is mounted there (the kernel says so
// since 5.8; before, a file mounted inside the tree counts).
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

// skipped passes over what vanished or is another file system; a tree beyond
// the bounds of a walk is counted as far as it was seen.
func (m *measure) skipped(_ int, _ string, err error) error {
	if errors.Is(err, errDeep) || errors.Is(err, errMany) {
		m.Partial = true
	}
	return nil
}
