package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Reasons not to read a readable file yet, or at all.
var (
	errWriting = errors.New("a process has it open for writing")
	errDraft   = errors.New("must be read again with the same content")
	errTooBig  = fmt.Errorf("larger than %d MiB; split it", MaxSize>>20)
)

// Intervals between two attempts to read an incomplete file.
const (
	retryShort  = 5 * time.Millisecond
	retryLong   = 15 * time.Millisecond // for a file that has been written for longer than writingLong
	writingLong = 10 * time.Second
	draftsApart = 200 * time.Millisecond
)

// draft is the result of the first of two reads that must be equal. It is used where the
// kernel does not report writers.
type draft struct {
	digest string
	stamp  stamp
	at     time.Time
}

// text is a complete content and its stamp.
type text struct {
	data   []byte
	digest string
	stamp  stamp
	birth  birth
	// shared reports whether a user other than root can write the file.
	shared bool
}

// reader reads complete files. lease is checkLease, except in tests.
type reader struct {
	lease func(*os.File) writerState
}

// read returns the content of a file that no process is writing. After errWriting and
// errDraft the caller must try again, after retryShort and draftsApart. d belongs to the file
// and must be passed again.
func (r reader) read(p *place, name string, link bool, d *draft, now time.Time) (text, error) {
	f, info, err := p.open(name, link)
	if err != nil {
		return text{}, err
	}
	defer f.Close()
	t := text{stamp: stampOf(info), birth: birthOf(int(f.Fd()), "", unix.AT_EMPTY_PATH), shared: othersWrite(info)}
	if info.Mode()&0o002 != 0 {
		return t, errAnyone
	}
	if info.Size() > MaxSize {
		return t, errTooBig
	}
	writers := r.lease(f)
	if writers == hasWriter {
		return t, errWriting
	}
	if t.data, err = io.ReadAll(io.LimitReader(f, MaxSize+1)); err != nil {
		return t, err
	}
	if len(t.data) > MaxSize {
		return t, errTooBig
	}
	t.digest = digestOf(t.data)
	if err := r.unchanged(f, t.stamp, writers); err != nil {
		return t, err
	}
	if writers == noWriter && !p.remote {
		return t, nil
	}
	return t, d.equal(t, now)
}

// unchanged returns an error if f was written while it was read. A write within one step of
// the filesystem's clock does not change the stamp, so the lease is checked again.
func (r reader) unchanged(f *os.File, before stamp, writers writerState) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stampOf(info) != before || writers == noWriter && r.lease(f) == hasWriter {
		return errWriting
	}
	return nil
}

// equal returns nil if t equals a read that was long enough ago.
func (d *draft) equal(t text, now time.Time) error {
	if d.digest != t.digest || d.stamp != t.stamp {
		*d = draft{t.digest, t.stamp, now}
		return errDraft
	}
	if now.Sub(d.at) < draftsApart {
		return errDraft
	}
	return nil
}
