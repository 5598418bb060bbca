package logs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hasWriter reports whether a process has f open for writing: fcntl(2) with F_SETLEASE and F_RDLCK
// fails with EAGAIN in this case. f must be open only for reading. The lease is released at once,
// so that a process that opens f for writing waits for at most one system call. If the file system
// does not support leases, hasWriter returns false.
func hasWriter(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	isOpenForWriting := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
		isOpenForWriting = errors.Is(err, unix.EAGAIN)
		if err == nil {
			// A process can always release its own lease. Closing f would release it, too.
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		}
	})
	return err == nil && isOpenForWriting
}
