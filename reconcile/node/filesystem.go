package node

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podd/runtime/stats"
)

// A Filesystem contains the capacity and the usage of a file system.
type Filesystem struct {
	stats.Space
	UsedBytes uint64 // bytes
}

// StatFilesystem returns the capacity and the usage of the file system that contains dir.
func StatFilesystem(dir string) (Filesystem, error) {
	if dir == "" {
		return Filesystem{}, errors.New("the runtime did not report the mount point of its image file system")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Filesystem{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	size := uint64(st.Bsize)
	return Filesystem{
		stats.Space{CapacityBytes: st.Blocks * size, AvailableBytes: st.Bavail * size, Inodes: st.Files, InodesFree: st.Ffree},
		(st.Blocks - st.Bfree) * size,
	}, nil
}

// ReadDiskSize returns the size in bytes of the file system that contains dir. If dir does not
// exist, ReadDiskSize uses the nearest parent that exists. The size is 0 if the file system has no
// limit, such as a tmpfs without a size.
func ReadDiskSize(dir string) (int64, error) {
	for {
		var fs unix.Statfs_t
		err := unix.Statfs(dir, &fs)
		if errors.Is(err, unix.ENOENT) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reading the size of the file system of %s: %w", dir, err)
		}
		return int64(fs.Blocks) * int64(fs.Bsize), nil
	}
}
