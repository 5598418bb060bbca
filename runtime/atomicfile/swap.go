package atomicfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// SwapIn replaces the file with the given name in root. It writes the content to the file spareName
// and exchanges the names of both files, so that the next call reuses the old file as its spare. A
// file that is replaced often then needs no new inodes. ext4 does not reuse the inode of a removed
// file for a minute or more, and must skip all such inodes whenever it creates a file.
//
// If durable is true, the new content survives a power cut when SwapIn returns nil. Otherwise,
// after a power cut, the file may have the old or the new content, or may be empty.
func SwapIn(root *os.Root, name, spareName string, data []byte, durable bool) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := openSpare(root, dir, spareName)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if durable && err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = exchange(root, dir, spareName, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(spareName))
	}
	if durable {
		return dir.Sync()
	}
	return nil
}

// openSpare opens the file with the name spareName in root for writing and empties it. dir is the
// open directory of root. If the file is not regular, has a mode other than 0600 or has a second
// hard link, openSpare replaces it.
func openSpare(root *os.Root, dir *os.File, spareName string) (*os.File, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	if fd, err := unix.Openat(int(dir.Fd()), spareName, flags, 0o600); err == nil {
		f := os.NewFile(uintptr(fd), spareName)
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) == nil && stat.Mode == unix.S_IFREG|0o600 && stat.Nlink == 1 && f.Truncate(0) == nil {
			return f, nil
		}
		_ = f.Close()
	}
	if err := root.Remove(spareName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return root.OpenFile(spareName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// exchange exchanges the names of the spare file and the file called name. If no file is called
// name, or if the file system cannot exchange names, exchange renames the spare file to name
// instead. This removes the old file.
func exchange(root *os.Root, dir *os.File, spareName, name string) error {
	fd := int(dir.Fd())
	if unix.Renameat2(fd, spareName, fd, name, unix.RENAME_EXCHANGE) == nil {
		return nil
	}
	return root.Rename(spareName, name)
}
