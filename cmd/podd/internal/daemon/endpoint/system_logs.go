package endpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// systemLogs is an fs.FS of the regular files and directories below dir. It follows links that do
// not lead out of dir. Containers that mount a part of dir can create links, FIFOs and devices
// there at any time.
type systemLogs struct{ dir string }

// Open implements fs.FS. It opens only regular files and directories, because opening a device
// can have effects. For all other files it returns fs.ErrNotExist.
func (l systemLogs) Open(name string) (fs.File, error) {
	dir, err := safepath.Open(l.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := dir.Follow(name)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !isFileOrDir(info) {
		return nil, fs.ErrNotExist
	}
	// Open the file by its descriptor instead of its name, because a container may have replaced
	// the file.
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(l.dir, name)), nil
}

func isFileOrDir(info fs.FileInfo) bool { return info.Mode().IsRegular() || info.IsDir() }
