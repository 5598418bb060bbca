package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/loopdisk"
)

// smallDisk is an ext4 file system in a file, mounted on dir.
type smallDisk struct{ image, dir string }

// newSmallDisk creates and mounts a file system with the given numbers of bytes and inodes. No blocks
// are reserved for root, so that processes of root can fill the file system completely.
func newSmallDisk(image, dir string, size, inodes int64) (smallDisk, error) {
	k := smallDisk{image, dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return k, err
	}
	if err := loopdisk.Create(image, size, "-m", "0", "-N", fmt.Sprint(inodes), "-E", "lazy_itable_init=0"); err != nil {
		return k, err
	}
	return k, loopdisk.Mount(image, dir)
}

// freeShares returns the shares of blocks and of inodes that are free, from 0 to 1.
func (k smallDisk) freeShares() (blocks, inodes float64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(k.dir, &st); err != nil {
		return 0, 0, fmt.Errorf("reading the free space of %s: %w", k.dir, err)
	}
	return float64(st.Bavail) / float64(st.Blocks), float64(st.Ffree) / float64(st.Files), nil
}

// remove unmounts and deletes the file system. If a process still uses the file system, the kernel
// frees it when the process exits.
func (k smallDisk) remove() error {
	return errors.Join(unix.Unmount(k.dir, unix.MNT_DETACH), os.Remove(k.image))
}
