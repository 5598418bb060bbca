package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// smallDisk is an ext4 file system in a file, mounted on dir.
type smallDisk struct{ image, dir string }

// newSmallDisk creates and mounts a file system with the given numbers of bytes and inodes. No blocks
// are reserved for root, so that processes of root can fill the file system completely.
func newSmallDisk(image, dir string, size, inodes int64) (smallDisk, error) {
	k := smallDisk{image, dir}
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size), os.MkdirAll(dir, 0o755)); err != nil {
		return k, err
	}
	for _, command := range [][]string{
		{"mkfs.ext4", "-q", "-m", "0", "-N", fmt.Sprint(inodes), "-E", "lazy_itable_init=0", image},
		{"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return k, fmt.Errorf("running %q: %w: %s", command, err, out)
		}
	}
	return k, nil
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
