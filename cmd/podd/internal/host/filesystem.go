package host

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

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

// CountProcesses returns the number of processes and threads on the host, or 0 if the number is
// unknown. path is /proc/loadavg, which contains a line such as "0.20 0.18 0.12 1/80 11206". The
// number of processes and threads follows the slash.
func CountProcesses(path string) int64 {
	text, err := os.ReadFile(path)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return 0
	}
	_, all, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.ParseInt(all, 10, 64)
	return n
}
