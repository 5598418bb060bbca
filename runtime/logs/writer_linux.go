package logs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// beingWritten tells whether somebody has f, open for reading only, open for
// writing: a read lease cannot be had then (fcntl(2), F_SETLEASE: EAGAIN). It is
// given back at once, so no writer waits for it longer than a system call. Where
// there are no leases nobody is known to write.
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
			// It cannot fail for the holder; closing f drops the lease as well.
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		}
	})
	return err == nil && written
}
