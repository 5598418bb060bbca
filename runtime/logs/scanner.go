package logs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
)

// bufferSize is what is read at a time; a longer line comes in pieces. Runtimes
// write none longer than half of it.
const bufferSize = 32 << 10

// buffers are those that nobody reads into.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// scanner cuts one file into entries, in a buffer of fixed size. At the end of
// the file it may be asked again later: the file may have grown.
type scanner struct {
	file File
	f    *os.File
	src  io.Reader // f, or what f decompresses to

	buf    []byte // of bufferSize, or only what was held at the end of the file
	r, w   int    // buf[r:w] is still to be cut up
	seen   int    // buf[r:r+seen] has no newline
	offset int64  // in the file, of buf[r]
	// long is the entry whose text the buffer could not hold; its rest follows.
	long *Entry
	// from tells, for each stream, where in the file to begin; nil: anywhere.
	from map[Stream]int64
	// after is the newest rotated file there was when this one was opened.
	after string
}

func newScanner(f *os.File, name File) *scanner {
	s := &scanner{file: name, f: f, src: f}
	if name.Compressed {
		s.src = &unzip{f: f}
	}
	return s
}

// unzip starts to read only when it is asked for the first time.
type unzip struct {
	f *os.File
	z *gzip.Reader
}

func (u *unzip) Read(p []byte) (int, error) {
	if u.z == nil {
		z, err := gzip.NewReader(u.f)
		if err != nil {
			return 0, err
		}
		u.z = z
	}
	return u.z.Read(p)
}

// next is the next entry, and io.EOF when there is none at present. A file
// that cannot be read on ends with a malformed entry that says so.
func (s *scanner) next() (Entry, error) {
	for {
		at := s.offset
		if i := bytes.IndexByte(s.buf[s.r+s.seen:s.w], '\n'); i >= 0 {
			e := s.line(s.buf[s.r : s.r+s.seen+i])
			s.take(s.seen + i + 1)
			if s.wanted(e, at) {
				return e, nil
			}
			continue
		}
		s.seen = s.w - s.r
		if s.seen == bufferSize {
			e := s.piece(s.buf)
			s.take(len(s.buf))
			if s.wanted(e, at) {
				return e, nil
			}
			continue
		}
		if err := s.fill(); err != nil {
			return Entry{}, err
		}
	}
}

func (s *scanner) take(n int) {
	s.r, s.seen, s.offset = s.r+n, 0, s.offset+int64(n)
}

func (s *scanner) fill() error {
	held := s.buf[s.r:s.w]
	if len(s.buf) < bufferSize {
		s.buf = buffers.Get().(*[bufferSize]byte)[:]
	}
	s.r, s.w = 0, copy(s.buf, held)
	n, err := s.src.Read(s.buf[s.w:])
	s.w += n
	switch {
	case n > 0:
		return nil
	case err == nil, errors.Is(err, io.EOF):
		return io.EOF
	}
	// Said once: whatever follows in this file is lost.
	s.src = bytes.NewReader(nil)
	s.w = copy(s.buf, fmt.Sprintf("podd: reading %s: %v\n", s.f.Name(), err))
	s.r, s.seen, s.long = 0, 0, nil
	return nil
}

// settle gives the buffer back, until there is more to read. No entry of it is in
// use any more.
func (s *scanner) settle() {
	if len(s.buf) < bufferSize {
		return
	}
	held := bytes.Clone(s.buf[s.r:s.w])
	buffers.Put((*[bufferSize]byte)(s.buf))
	s.buf, s.r, s.w = held, 0, len(held)
}

// line makes an entry of what precedes a newline.
func (s *scanner) line(line []byte) Entry {
	e := Parse(line)
	if s.long != nil {
		e = *s.long
		e.Text, s.long = line, nil
	}
	e.Attempt = s.file.Attempt
	return e
}

// piece makes an entry of a buffer full of one line.
func (s *scanner) piece(text []byte) Entry {
	if s.long == nil {
		e := Parse(text)
		long := e
		long.Stamp = bytes.Clone(e.Stamp)
		s.long = &long
		text = e.Text
	}
	e := *s.long
	e.Attempt, e.Text, e.Partial = s.file.Attempt, text, true
	return e
}

// rest is what is left at the end of a file that nobody writes to any more: a
// line cut short, as by a power cut.
func (s *scanner) rest() (Entry, bool) {
	if s.r == s.w {
		return Entry{}, false
	}
	at := s.offset
	e := s.line(s.buf[s.r:s.w])
	e.Partial = true
	s.take(s.w - s.r)
	return e, s.wanted(e, at)
}

func (s *scanner) wanted(e Entry, at int64) bool {
	if s.from == nil {
		return true
	}
	from, ok := s.from[e.Stream]
	if !ok {
		from = math.MaxInt64
	}
	return at >= from
}

// startOver begins again when the file was cut to less than what was read of
// it, as somebody short of space may do.
func (s *scanner) startOver() (bool, error) {
	if s.file.Compressed {
		return false, nil
	}
	info, err := s.f.Stat()
	if err != nil || info.Size() >= s.offset+int64(s.w-s.r) {
		return false, err
	}
	_, err = s.f.Seek(0, io.SeekStart)
	s.r, s.w, s.seen, s.offset, s.long, s.from = 0, 0, 0, 0, nil, nil
	return true, err
}

// seek goes to where the tail begins. Only before the first next, and only in
// a plain file.
func (s *scanner) seek(offset int64) error {
	s.offset = offset
	_, err := s.f.Seek(offset, io.SeekStart)
	return err
}
