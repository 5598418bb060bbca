package source

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stamp contains the result of stat that changes whenever the content of a file changes,
// with the exception described at settled. The zero value is the stamp of no file.
type stamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // Unix nanoseconds
}

// stampOf returns the stamp of info.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.dev, s.ino = uint64(st.Dev), st.Ino
		s.ctime = time.Unix(st.Ctim.Unix()).UnixNano()
	}
	return s
}

// maxClockStep is longer than the clock step of any filesystem.
const maxClockStep = 2 * time.Second

// settled reports whether a change after now would change the stamp. Two contents that are
// written within one step of the filesystem's clock can have the same stamp.
func (s stamp) settled(now time.Time) bool {
	return now.Sub(time.Unix(0, s.ctime)) > maxClockStep
}

// birth identifies a file, even if another file gets its inode later. The zero value is
// that of a file on a filesystem without birth times.
type birth struct {
	dev, ino uint64
	at       int64 // Unix nanoseconds
}

// birthOf returns the birth of the file at dirfd and path, which are those of statx(2).
func birthOf(dirfd int, path string, flags int) birth {
	var st unix.Statx_t
	err := unix.Statx(dirfd, path, flags, unix.STATX_BTIME|unix.STATX_INO, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return birth{}
	}
	return birth{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, st.Btime.Sec*1e9 + int64(st.Btime.Nsec)}
}

// version returns the modification time, but never later than now.
func (s stamp) version(now time.Time) time.Time { return timeBefore(s.mtime, now) }

// changed returns when the file last changed, but never later than now. Unlike mtime, ctime
// cannot be set by a user, and a rename updates it.
func (s stamp) changed(now time.Time) time.Time { return timeBefore(s.ctime, now) }

func timeBefore(nanos int64, now time.Time) time.Time {
	if t := time.Unix(0, nanos); t.Before(now) {
		return t
	}
	return now
}
