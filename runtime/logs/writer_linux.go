package logs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// beingWritten reports whether a process has f open for writing. f must be open for reading
// only. F_SETLEASE with F_RDLCK fails with EAGAIN in this case (fcntl(2)). The lease is
// released at once, so a writer waits no longer than one system call. If the file system
// does not support leases, it returns false.
func beingWritten(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	written := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
		written = errors.Is(err, unix.EAGAIN)
		if err == nil {
			// This cannot fail for the holder. Closing f also drops the lease.
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		}
	})
	return err == nil && written
}
