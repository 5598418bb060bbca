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

// bufferSize is how much is read at a time; a longer line is split. Runtimes write no line
// longer than half of it.
const bufferSize = 32 << 10

// buffers contains unused buffers.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// scanner splits one file into entries, with a buffer of fixed size. After the end of the
// file it can be called again, because the file may have grown.
type scanner struct {
	file File
	f    *os.File
	src  io.Reader // f, or the decompressed f

	buf    []byte // of bufferSize, or only the unread bytes at the end of the file
	r, w   int    // buf[r:w] is not split yet
	seen   int    // buf[r:r+seen] has no newline
	offset int64  // of buf[r] in the file
	// long is the entry that did not fit into the buffer; its rest follows.
	long *Entry
	// from is the offset in the file where each stream begins; nil: at the start.
	from map[Stream]int64
	// after is the newest rotated file that existed when this one was opened.
	after string
}

func newScanner(f *os.File, name File) *scanner {
	s := &scanner{file: name, f: f, src: f}
	if name.Compressed {
		s.src = &unzip{f: f}
	}
	return s
}

// unzip starts to decompress with the first read.
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

// next returns the next entry, or io.EOF if there is none at present. A file that cannot be
// read completely ends with a malformed entry with the error.
func (s *scanner) next() (Entry, error) {
	for {
		at := s.offset
		if i := bytes.IndexByte(s.buf[s.r+s.seen:s.w], '\n'); i >= 0 {
			e := s.line(s.buf[s.r : s.r+s.seen+i])
			s.take(s.seen + i + 1)
			if s.selects(e, at) {
				return e, nil
			}
			continue
		}
		s.seen = s.w - s.r
		if s.seen == bufferSize {
			e := s.piece(s.buf)
			s.take(len(s.buf))
			if s.selects(e, at) {
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
	// Reported once: the rest of the file cannot be read.
	s.src = bytes.NewReader(nil)
	s.w = copy(s.buf, fmt.Sprintf("podd: reading %s: %v\n", s.f.Name(), err))
	s.r, s.seen, s.long = 0, 0, nil
	return nil
}

// releaseBuffer releases the buffer until there is more to read. Its entries must no longer be
// in use.
func (s *scanner) releaseBuffer() {
	if len(s.buf) < bufferSize {
		return
	}
	held := bytes.Clone(s.buf[s.r:s.w])
	buffers.Put((*[bufferSize]byte)(s.buf))
	s.buf, s.r, s.w = held, 0, len(held)
}

// line returns the entry for the text before a newline.
func (s *scanner) line(line []byte) Entry {
	e := parse(line)
	if s.long != nil {
		e = *s.long
		e.Text, s.long = line, nil
	}
	e.Attempt = s.file.Attempt
	return e
}

// piece returns an entry for a full buffer of one line.
func (s *scanner) piece(text []byte) Entry {
	if s.long == nil {
		e := parse(text)
		long := e
		long.Stamp = bytes.Clone(e.Stamp)
		s.long = &long
		text = e.Text
	}
	e := *s.long
	e.Attempt, e.Text, e.Partial = s.file.Attempt, text, true
	return e
}

// rest returns the rest at the end of a file that is no longer written: an incomplete
// line, for example after a power cut.
func (s *scanner) rest() (Entry, bool) {
	if s.r == s.w {
		return Entry{}, false
	}
	at := s.offset
	e := s.line(s.buf[s.r:s.w])
	e.Partial = true
	s.take(s.w - s.r)
	return e, s.selects(e, at)
}

func (s *scanner) selects(e Entry, at int64) bool {
	if s.from == nil {
		return true
	}
	from, ok := s.from[e.Stream]
	if !ok {
		from = math.MaxInt64
	}
	return at >= from
}

// startOver starts at the beginning if the file was truncated to less than what was read of
// it.
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

// seek sets the offset where the tail begins. It must be called before the first next, and
// only for a plain file.
func (s *scanner) seek(offset int64) error {
	s.offset = offset
	_, err := s.f.Seek(offset, io.SeekStart)
	return err
}
