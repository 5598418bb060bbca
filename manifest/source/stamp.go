package source

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stamp contains the fields of stat that change when the content of a file changes. A change soon
// after another change may not change the stamp; see isSettled. The zero value is not the stamp of
// any file.
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

// maxTimestampStep is an upper bound for the granularity of the timestamps of files.
const maxTimestampStep = 2 * time.Second

// isSettled reports whether every change of the file after the time now will change the stamp. It
// returns false if the file was changed less than maxTimestampStep before now. The next change of the
// file can then have the same ctime and so the same stamp.
func (s stamp) isSettled(now time.Time) bool {
	return now.Sub(time.Unix(0, s.ctime)) > maxTimestampStep
}

// birth identifies a file, even if another file gets its inode number later. The zero value
// means that the filesystem has no birth times.
type birth struct {
	dev, ino uint64
	unixNano int64 // Unix nanoseconds
}

// readBirth returns the birth of a file. The arguments are those of statx(2).
func readBirth(dirfd int, path string, flags int) birth {
	var st unix.Statx_t
	err := unix.Statx(dirfd, path, flags, unix.STATX_BTIME|unix.STATX_INO, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return birth{}
	}
	return birth{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, st.Btime.Sec*1e9 + int64(st.Btime.Nsec)}
}

// modTime returns the modification time of the file, or now if the modification time is in the
// future.
func (s stamp) modTime(now time.Time) time.Time { return earlierOf(s.mtime, now) }

// changeTime returns the ctime of the file, or now if the ctime is in the future. Unlike mtime,
// ctime cannot be set by a user, and a rename updates it.
func (s stamp) changeTime(now time.Time) time.Time { return earlierOf(s.ctime, now) }

func earlierOf(nanos int64, now time.Time) time.Time {
	if t := time.Unix(0, nanos); t.Before(now) {
		return t
	}
	return now
}
