package source

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"podd/runtime/bootid"
)

// identity identifies a directory of manifests, so that podd can distinguish it from another
// directory at the same path. The other directory can be a new directory. It can also be the mount
// point, if the filesystem with the manifests is not mounted. The cache contains the identity, so
// it must stay valid across restarts of podd and of the host.
type identity struct {
	// IsMount reports whether the directory is the root of a mounted filesystem. On kernels before
	// 5.8 it reports whether the directory and its parent are on different devices.
	IsMount bool `json:"mount"`
	// Inode is the inode number of the directory. BornUnixNano is its birth time in Unix
	// nanoseconds, or 0 if the filesystem has no birth times. The birth time is necessary because
	// inode numbers are reused.
	Inode        uint64 `json:"inode"`
	BornUnixNano int64  `json:"born,omitempty"`
	// Filesystem is the id that statfs(2) returns; "" if there is none. It is necessary because
	// the root directories of two filesystems can have the same inode number.
	Filesystem string `json:"filesystem,omitempty"`
	// Device is st_dev of the directory in the boot with the ID BootID. After a reboot the same
	// filesystem may have another device number.
	Device uint64 `json:"device"`
	BootID string `json:"boot,omitempty"`
}

// identify returns the identity of an open directory. info is its FileInfo.
func identify(dir *os.File, info fs.FileInfo) identity {
	fd, stamp := int(dir.Fd()), stampOf(info)
	id := identity{Inode: stamp.ino, Device: stamp.dev, Filesystem: filesystemID(fd)}
	id.BootID, _ = bootid.Get() // mayMatch does not compare an empty ID
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st); err != nil {
		st = unix.Statx_t{}
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.BornUnixNano = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	if st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		id.IsMount = st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
		return id
	}
	var parent unix.Stat_t
	id.IsMount = unix.Fstatat(fd, "..", &parent, unix.AT_SYMLINK_NOFOLLOW) == nil && uint64(parent.Dev) != id.Device
	return id
}

// mayMatch reports whether the two identities can belong to the same directory. It does not compare
// a field that is missing in one of them. It compares Filesystem only if the directories are mounts.
// For other directories Inode and BornUnixNano are sufficient, and on some filesystems Filesystem is
// the device number, which can change.
func (id identity) mayMatch(other identity) bool {
	switch {
	case id.IsMount != other.IsMount, id.Inode != other.Inode:
		return false
	case id.BornUnixNano != 0 && other.BornUnixNano != 0 && id.BornUnixNano != other.BornUnixNano:
		return false
	case id.IsMount && id.Filesystem != "" && other.Filesystem != "" && id.Filesystem != other.Filesystem:
		return false
	}
	return id.BootID == "" || id.BootID != other.BootID || id.Device == other.Device
}

// filesystemID returns the id of the filesystem of a file, or "" if there is none.
func filesystemID(fd int) string {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil || st.Fsid.Val == [2]int32{} {
		return ""
	}
	return fmt.Sprintf("%08x%08x", uint32(st.Fsid.Val[0]), uint32(st.Fsid.Val[1]))
}
