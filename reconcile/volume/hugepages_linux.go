package volume

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// A hugetlbfsMount contains the mount parameters of an emptyDir in huge pages.
type hugetlbfsMount struct {
	size  int64 // page size in bytes
	limit int64 // size limit in bytes; 0 means only the limit of the cgroup
	mode  uint32
	gid   int // group ID; -1 means no group
}

// options returns the mount options for a hugetlbfs. The limit is rounded up to whole pages.
func (h hugetlbfsMount) options() string {
	options := fmt.Sprintf("pagesize=%d,mode=%o", h.size, h.mode&0o1777)
	if h.gid >= 0 {
		options += fmt.Sprintf(",gid=%d", h.gid)
	}
	if h.limit > 0 {
		options += fmt.Sprintf(",size=%d", min((h.limit-1)/h.size+1, math.MaxInt64/h.size)*h.size)
	}
	return options
}

// mountHugePages mounts a hugetlbfs at name in dir, unless a hugetlbfs with this page size is
// mounted there.
func mountHugePages(dir *safepath.Dir, name string, h hugetlbfsMount) error {
	if _, err := dir.Mkdir(name, dirMode, -1); err != nil { // the mount hides the mount point and its mode
		return err
	}
	vol, err := dir.SubSameMount(name)
	if errors.Is(err, safepath.ErrMount) {
		return checkHugePages(dir, name, h.size)
	}
	if err != nil {
		return err
	}
	defer vol.Close()
	// Mount at the descriptor instead of the path, so that no link is followed.
	err = unix.Mount("nodev", fmt.Sprintf("/proc/self/fd/%d", vol.Fd()), "hugetlbfs", 0, h.options())
	switch {
	case err == unix.ENODEV:
		return errors.New("mounting a hugetlbfs: the kernel does not support hugetlbfs; use the medium Memory")
	case err == unix.EINVAL:
		return fmt.Errorf("mounting a hugetlbfs: the host does not support pages of %d KiB; see /sys/kernel/mm/hugepages", h.size>>10)
	case err != nil:
		return fmt.Errorf("mounting a hugetlbfs: %w", err)
	}
	if h.mode&unix.S_ISGID == 0 {
		return nil
	}
	root, err := dir.Sub(name)
	if err != nil {
		return err
	}
	defer root.Close()
	// The mount option does not support the setgid bit, so Fchmod sets the mode.
	return unix.Fchmod(root.Fd(), h.mode)
}

func checkHugePages(dir *safepath.Dir, name string, size int64) error {
	st, err := statfs(dir, name)
	if err != nil {
		return err
	}
	if int64(st.Type) != unix.HUGETLBFS_MAGIC || int64(st.Bsize) != size {
		return fmt.Errorf("the file system that is mounted at this volume is not a hugetlbfs with pages of %d KiB; unmount it", size>>10)
	}
	return nil
}
