package source

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stamp is what stat tells about the content of a file; while it is equal, the
// content is. (But see settled.) The zero value is of no file.
type stamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // Unix nanoseconds
}

// stampOf is the stamp in a FileInfo of this operating system.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.dev, s.ino = uint64(st.Dev), st.Ino
		s.ctime = time.Unix(st.Ctim.Unix()).UnixNano()
	}
	return s
}

// coarse is longer than the steps in which any filesystem counts its times.
const coarse = 2 * time.Second

// settled says that a change after now would change the stamp too: within one
// step of the filesystem's clock two contents can have one stamp.
func (s stamp) settled(now time.Time) bool {
	return now.Sub(time.Unix(0, s.ctime)) > coarse
}

// birth tells a file from every other one, also from one that got its inode
// later. The zero value is of a file on a filesystem that keeps no birth time.
type birth struct {
	dev, ino uint64
	at       int64 // Unix nanoseconds
}

// birthOf asks for the birth of the file that dirfd and path lead to, as
// statx(2) takes them.
func birthOf(dirfd int, path string, flags int) birth {
	var st unix.Statx_t
	err := unix.Statx(dirfd, path, flags, unix.STATX_BTIME|unix.STATX_INO, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return birth{}
	}
	return birth{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, st.Btime.Sec*1e9 + int64(st.Btime.Nsec)}
}

// version is the time of the content, never later than now.
func (s stamp) version(now time.Time) time.Time { return earlier(s.mtime, now) }

// changed is when the content came to be there, never later than now. Unlike
// mtime nobody can set it, and a rename sets it.
func (s stamp) changed(now time.Time) time.Time { return earlier(s.ctime, now) }

func earlier(nanos int64, now time.Time) time.Time {
	if t := time.Unix(0, nanos); t.Before(now) {
		return t
	}
	return now
}
