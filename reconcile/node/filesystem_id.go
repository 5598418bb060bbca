package node

import (
	"encoding/binary"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filesystemID returns the ID of the file system that contains dir. Two directories are in the same
// file system if their IDs are equal. The ID is st_dev, except on Btrfs, where each subvolume has its
// own st_dev although all subvolumes share the space of one file system.
func filesystemID(dir string) (uint64, error) {
	var space unix.Statfs_t
	if err := unix.Statfs(dir, &space); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if uint32(space.Type) == unix.BTRFS_SUPER_MAGIC {
		return btrfsID(dir)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	return uint64(st.Dev), nil
}

// btrfsGetInfo is the ioctl BTRFS_IOC_FS_INFO of linux/btrfs.h. It fills a btrfsInfo.
const btrfsGetInfo = 0x8400941f

// A btrfsInfo is the struct btrfs_ioctl_fs_info_args of linux/btrfs.h.
type btrfsInfo struct {
	MaxDeviceID, NumDevices uint64
	UUID                    [16]byte // of the file system
	_                       [992]byte
}

// btrfsID returns an ID that is computed from the UUID of the Btrfs file system that contains dir. The
// file system ID of statfs cannot be used, because it depends on the subvolume.
func btrfsID(dir string) (uint64, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var info btrfsInfo
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), btrfsGetInfo, uintptr(unsafe.Pointer(&info))); errno != 0 {
		return 0, &fs.PathError{Op: "ioctl BTRFS_IOC_FS_INFO", Path: dir, Err: errno}
	}
	return binary.NativeEndian.Uint64(info.UUID[:8]) ^ binary.NativeEndian.Uint64(info.UUID[8:]), nil
}
