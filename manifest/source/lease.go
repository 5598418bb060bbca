package source

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openness is what the kernel tells about writers of a file.
type openness int

const (
	unwritten openness = iota // nobody has it open for writing
	written                   // somebody has
	unknown                   // the filesystem or its owner does not let us know
)

// askLease asks whether anybody has f, open for reading only, open for writing:
// a read lease cannot be had then (fcntl(2), F_SETLEASE: EAGAIN). The lease is
// given back at once, so no writer waits for it longer than a system call.
func askLease(f *os.File) openness {
	raw, err := f.SyscallConn()
	if err != nil {
		return unknown
	}
	answer := unknown
	err = raw.Control(func(fd uintptr) {
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
		switch {
		case err == nil:
			answer = unwritten
			// It cannot fail for the holder; closing f drops the lease as well.
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		case errors.Is(err, unix.EAGAIN):
			answer = written
		}
	})
	if err != nil {
		return unknown
	}
	return answer
}

// remote are filesystems on which another machine can write: neither leases nor
// inotify tell of that.
var remote = map[int64]bool{
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

// isRemote says whether the open directory is on such a filesystem.
func isRemote(dir *os.File) bool {
	raw, err := dir.SyscallConn()
	if err != nil {
		return false
	}
	var st unix.Statfs_t
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Fstatfs(int(fd), &st) }); err != nil || failed != nil {
		return false
	}
	return remote[int64(uint32(st.Type))]
}
