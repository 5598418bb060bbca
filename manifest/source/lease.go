package source

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// writerState describes whether a file is open for writing.
type writerState int

const (
	noWriter      writerState = iota // no process has the file open for writing
	hasWriter                        // a process has the file open for writing
	unknownWriter                    // the filesystem or the owner of the file does not allow the check
)

// checkLease checks whether a process has f open for writing: F_SETLEASE with F_RDLCK fails with
// EAGAIN in this case (fcntl(2)). f must be open for reading only. checkLease releases the lease
// at once, so a writer waits no longer than one system call.
func checkLease(f *os.File) writerState {
	conn, err := f.SyscallConn()
	if err != nil {
		return unknownWriter
	}
	state := unknownWriter
	err = conn.Control(func(fd uintptr) {
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
		switch {
		case err == nil:
			state = noWriter
			// Ignore the error: a process can always release its own lease, and closing f also
			// releases it.
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		case errors.Is(err, unix.EAGAIN):
			state = hasWriter
		}
	})
	if err != nil {
		return unknownWriter
	}
	return state
}

// remoteFilesystems lists the filesystems to which other hosts can write. Neither leases nor
// inotify report such writes.
var remoteFilesystems = map[int64]bool{
	unix.NFS_SUPER_MAGIC:   true,
	unix.SMB_SUPER_MAGIC:   true,
	unix.SMB2_SUPER_MAGIC:  true,
	unix.CIFS_SUPER_MAGIC:  true,
	unix.FUSE_SUPER_MAGIC:  true, // sshfs, virtiofs, glusterfs
	unix.V9FS_MAGIC:        true,
	unix.CEPH_SUPER_MAGIC:  true,
	unix.AFS_SUPER_MAGIC:   true,
	unix.CODA_SUPER_MAGIC:  true,
	unix.OCFS2_SUPER_MAGIC: true,
}

// isRemote reports whether the open directory is on a filesystem that remoteFilesystems contains.
func isRemote(dir *os.File) bool {
	conn, err := dir.SyscallConn()
	if err != nil {
		return false
	}
	var st unix.Statfs_t
	var statErr error
	if err := conn.Control(func(fd uintptr) { statErr = unix.Fstatfs(int(fd), &st) }); err != nil || statErr != nil {
		return false
	}
	return remoteFilesystems[int64(uint32(st.Type))]
}
