package endpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// systemLogs shows the regular files and directories below dir. Links are followed
// as long as they stay below it. Containers that mount a part of dir can plant
// links, FIFOs and devices there, at any moment.
type systemLogs struct{ dir string }

// Open implements fs.FS. Everything but a regular file or a directory is
// fs.ErrNotExist and is not opened, because opening a device can have effects.
func (l systemLogs) Open(name string) (fs.File, error) {
	dir, err := safepath.Open(l.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	held, err := dir.Follow(name)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	defer held.Close()
	if info, err := held.Stat(); err != nil || !isFileOrDir(info) {
		return nil, fs.ErrNotExist
	}
	// What held refers to cannot be swapped, unlike what its name refers to.
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", held.Fd()), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(l.dir, name)), nil
}

func isFileOrDir(info fs.FileInfo) bool { return info.Mode().IsRegular() || info.IsDir() }
