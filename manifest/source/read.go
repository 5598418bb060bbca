package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Reasons not to use the content of a readable file: the content may be incomplete, or the file
// is too large.
var (
	errOpenForWriting = errors.New("a process has the file open for writing")
	errReadAgain      = errors.New("podd must read the file a second time, because it may still be changing")
	errTooLarge       = fmt.Errorf("larger than %d MiB; split it", MaxSize>>20)
)

// Intervals between two reads of an incomplete file.
const (
	shortRetryDelay = 5 * time.Millisecond
	longRetryDelay  = 15 * time.Millisecond // for a file that a process has been writing for longer than longWriteAfter
	longWriteAfter  = 10 * time.Second
	secondReadDelay = 200 * time.Millisecond
)

// firstRead is the result of the first of two reads that must be equal. Two reads are necessary
// if the kernel does not report whether a process has the file open for writing.
type firstRead struct {
	digest string
	stamp  stamp
	at     time.Time
}

// readResult is the content of a file and the attributes of the file when it was read.
type readResult struct {
	data   []byte
	digest string
	stamp  stamp
	birth  birth
	// othersCanWrite reports whether a user other than root can write to the file.
	othersCanWrite bool
}

// reader reads complete files. Its field is the function checkLease, except in tests.
type reader struct {
	checkLease func(*os.File) writerState
}

// read returns the content of a file that no process has open for writing. If it returns
// errOpenForWriting or errReadAgain, the caller must read the file again after a delay. earlierRead
// stores the state between two reads of one file, so the caller must pass the same value to every
// read of this file.
func (r reader) read(dir *manifestDir, name string, isLink bool, earlierRead *firstRead, now time.Time) (readResult, error) {
	f, info, err := dir.open(name, isLink)
	if err != nil {
		return readResult{}, err
	}
	defer f.Close()
	t := readResult{stamp: stampOf(info), birth: readBirth(int(f.Fd()), "", unix.AT_EMPTY_PATH), othersCanWrite: othersCanWrite(info)}
	if info.Mode()&0o002 != 0 {
		return t, errWorldWritable
	}
	if info.Size() > MaxSize {
		return t, errTooLarge
	}
	writers := r.checkLease(f)
	if writers == hasWriter {
		return t, errOpenForWriting
	}
	if t.data, err = io.ReadAll(io.LimitReader(f, MaxSize+1)); err != nil {
		return t, err
	}
	if len(t.data) > MaxSize {
		return t, errTooLarge
	}
	t.digest = digestOf(t.data)
	if err := r.checkUnchanged(f, t.stamp, writers); err != nil {
		return t, err
	}
	if err := dir.recheckAccess(name, isLink); err != nil {
		return t, err
	}
	if writers == noWriter && !dir.isRemote {
		return t, nil
	}
	return t, earlierRead.confirm(t, now)
}

// checkUnchanged returns errOpenForWriting if the stamp of f has changed since earlierStamp,
// because a process must have written to f. It also checks the lease again, because the stamp does
// not change if two writes get the same timestamp.
func (r reader) checkUnchanged(f *os.File, earlierStamp stamp, writers writerState) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stampOf(info) != earlierStamp || writers == noWriter && r.checkLease(f) == hasWriter {
		return errOpenForWriting
	}
	return nil
}

// confirm returns nil if t equals the first read, and the first read was at least secondReadDelay
// ago. Otherwise it returns errReadAgain. If t differs, t becomes the first read.
func (f *firstRead) confirm(t readResult, now time.Time) error {
	if f.digest != t.digest || f.stamp != t.stamp {
		*f = firstRead{t.digest, t.stamp, now}
		return errReadAgain
	}
	if now.Sub(f.at) < secondReadDelay {
		return errReadAgain
	}
	return nil
}
