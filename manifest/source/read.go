package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Why a file that can be read is not read yet.
var (
	errWriting = errors.New("somebody has it open for writing")
	errDraft   = errors.New("it was read once and must be found equal again")
	errTooBig  = fmt.Errorf("it has more than %d MiB; split it", MaxSize>>20)
)

// Times between two looks at a file that is not complete.
const (
	askAgain    = 5 * time.Millisecond
	askLater    = 15 * time.Millisecond // of one that has been written for long
	long        = 10 * time.Second
	draftsApart = 200 * time.Millisecond
)

// draft is what the first of two equal readings found, where the kernel cannot
// tell about writers.
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
	// shared: others than root may write it.
	shared bool
}

// reader reads complete files; lease is askLease, or a test's.
type reader struct {
	lease func(*os.File) openness
}

// read returns the content of a file that nobody is writing. errWriting and
// errDraft ask for another look, after askAgain and draftsApart; d keeps what
// one draft must tell the next and is the file's own.
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
	if writers == written {
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
	if writers == unwritten && !p.remote {
		return t, nil
	}
	return t, d.equal(t, now)
}

// unchanged says that nobody wrote f while it was read: neither to its end nor,
// within one step of the clock, unseen by stat but still at it.
func (r reader) unchanged(f *os.File, before stamp, writers openness) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stampOf(info) != before || writers == unwritten && r.lease(f) == written {
		return errWriting
	}
	return nil
}

// equal is nil when t was read before, long enough ago.
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
