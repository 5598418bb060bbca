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

// bufferSize is the number of bytes that are read at a time. A scanner splits longer lines into
// several entries. Runtimes write only lines that are at most half as long.
const bufferSize = 32 << 10

// bufferPool contains unused buffers for scanners.
var bufferPool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// A scanner splits one file into entries. It uses a buffer of fixed size. If next has reached the
// end of the file, it can be called again later, because the file may have grown.
type scanner struct {
	file File
	f    *os.File
	src  io.Reader // f, or a reader that decompresses f

	buf            []byte // bufferSize bytes long, or only the unread bytes at the end of the file
	r, w           int    // buf[r:w] was read and not split yet
	searchedLength int    // buf[r:r+searchedLength] contains no newline
	offset         int64  // offset of buf[r] in the file
	// longEntry is the header of a line that did not fit into the buffer. The rest of the
	// line follows.
	longEntry *Entry
	// startOffsets contains the offset at which each stream begins. Nil means the start of the file.
	startOffsets map[Stream]int64
	// newestRotatedAtOpen is the rotation time of the newest rotated file when this file was opened.
	newestRotatedAtOpen string
}

func newScanner(f *os.File, name File) *scanner {
	s := &scanner{file: name, f: f, src: f}
	if name.Compressed {
		s.src = &unzipReader{f: f}
	}
	return s
}

// An unzipReader decompresses f. Before the first call of Read, it reads nothing from f.
type unzipReader struct {
	f *os.File
	z *gzip.Reader
}

func (u *unzipReader) Read(p []byte) (int, error) {
	if u.z == nil {
		z, err := gzip.NewReader(u.f)
		if err != nil {
			return 0, err
		}
		u.z = z
	}
	return u.z.Read(p)
}

// next returns the next entry, or io.EOF if there is none at present. If the rest of the file
// cannot be read, next returns a malformed entry with the error as the last entry.
func (s *scanner) next() (Entry, error) {
	for {
		offset := s.offset
		if i := bytes.IndexByte(s.buf[s.r+s.searchedLength:s.w], '\n'); i >= 0 {
			e := s.entry(s.buf[s.r : s.r+s.searchedLength+i])
			s.advance(s.searchedLength + i + 1)
			if s.isInTail(e, offset) {
				return e, nil
			}
			continue
		}
		s.searchedLength = s.w - s.r
		if s.searchedLength == bufferSize {
			e := s.partialEntry(s.buf)
			s.advance(len(s.buf))
			if s.isInTail(e, offset) {
				return e, nil
			}
			continue
		}
		if err := s.fill(); err != nil {
			return Entry{}, err
		}
	}
}

// advance skips the first n unread bytes of the buffer, after they were returned as an entry.
func (s *scanner) advance(n int) {
	s.r, s.searchedLength, s.offset = s.r+n, 0, s.offset+int64(n)
}

// fill reads more of the file into the buffer. It returns io.EOF at the end of the file.
func (s *scanner) fill() error {
	unread := s.buf[s.r:s.w]
	if len(s.buf) < bufferSize {
		s.buf = bufferPool.Get().(*[bufferSize]byte)[:]
	}
	s.r, s.w = 0, copy(s.buf, unread)
	n, err := s.src.Read(s.buf[s.w:])
	s.w += n
	switch {
	case n > 0:
		return nil
	case err == nil, errors.Is(err, io.EOF):
		return io.EOF
	}
	// Report the error once; the rest of the file cannot be read.
	s.src = bytes.NewReader(nil)
	s.w = copy(s.buf, fmt.Sprintf("podd: reading %s: %v\n", s.f.Name(), err))
	s.r, s.searchedLength, s.longEntry = 0, 0, nil
	return nil
}

// releaseBuffer returns the buffer to bufferPool until there is more to read. The entries that were
// returned must no longer be in use.
func (s *scanner) releaseBuffer() {
	if len(s.buf) < bufferSize {
		return
	}
	unread := bytes.Clone(s.buf[s.r:s.w])
	bufferPool.Put((*[bufferSize]byte)(s.buf))
	s.buf, s.r, s.w = unread, 0, len(unread)
}

// entry returns the entry for a line, or for the rest of a line after longEntry.
func (s *scanner) entry(line []byte) Entry {
	e := parse(line)
	if s.longEntry != nil {
		e = *s.longEntry
		e.Text, s.longEntry = line, nil
	}
	e.Attempt = s.file.Attempt
	return e
}

// partialEntry returns a Partial entry for a line that fills the buffer and continues after it.
func (s *scanner) partialEntry(text []byte) Entry {
	if s.longEntry == nil {
		e := parse(text)
		header := e
		header.Timestamp = bytes.Clone(e.Timestamp)
		s.longEntry = &header
		text = e.Text
	}
	e := *s.longEntry
	e.Attempt, e.Text, e.Partial = s.file.Attempt, text, true
	return e
}

// lastEntry returns the entry for an incomplete line at the end of a file that is no longer
// written, for example after a power cut. ok is false if there is none.
func (s *scanner) lastEntry() (e Entry, ok bool) {
	if s.r == s.w {
		return Entry{}, false
	}
	offset := s.offset
	e = s.entry(s.buf[s.r:s.w])
	e.Partial = true
	s.advance(s.w - s.r)
	return e, s.isInTail(e, offset)
}

// isInTail reports whether the entry at an offset is part of the tail.
func (s *scanner) isInTail(e Entry, offset int64) bool {
	if s.startOffsets == nil {
		return true
	}
	start, ok := s.startOffsets[e.Stream]
	if !ok {
		start = math.MaxInt64
	}
	return offset >= start
}

// rewindIfTruncated continues at the start of the file if the file is shorter than the part that
// was already read. wasTruncated reports whether the file was shorter.
func (s *scanner) rewindIfTruncated() (wasTruncated bool, err error) {
	if s.file.Compressed {
		return false, nil
	}
	info, err := s.f.Stat()
	if err != nil || info.Size() >= s.offset+int64(s.w-s.r) {
		return false, err
	}
	_, err = s.f.Seek(0, io.SeekStart)
	s.r, s.w, s.searchedLength, s.offset, s.longEntry, s.startOffsets = 0, 0, 0, 0, nil, nil
	return true, err
}

// seek continues at offset, where the tail begins. It must be called before the first call
// of next, and only for a file that is not compressed.
func (s *scanner) seek(offset int64) error {
	s.offset = offset
	_, err := s.f.Seek(offset, io.SeekStart)
	return err
}
