package once

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Stream is one of podd's own output streams, shared by containers and podd so
// that each line is of one of them. Safe for concurrent use.
type Stream struct {
	name   string
	broken chan struct{} // closed when err is set

	mu sync.Mutex // guards all following fields
	w  *bufio.Writer
	// open has begun a line that has no end yet.
	open any
	err  error // the first; nothing is written after it
}

// NewStream makes a Stream of w, which is called name in errors.
func NewStream(name string, w io.Writer) *Stream {
	return &Stream{name: name, w: bufio.NewWriterSize(w, 256<<10), broken: make(chan struct{})}
}

// write adds a line of its author, or with ends false a piece of one. Of a line
// in pieces only the first gets the prefix, unless another author wrote since.
func (s *Stream) write(author any, prefix string, text []byte, ends bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != author {
		if s.open != nil {
			s.put("\n")
		}
		s.put(prefix)
	}
	s.open = author
	if s.err == nil {
		_, err := s.w.Write(text)
		s.fail(err)
	}
	if ends {
		s.put("\n")
		s.open = nil
	}
	return s.err
}

func (s *Stream) put(text string) {
	if s.err == nil {
		_, err := s.w.WriteString(text)
		s.fail(err)
	}
}

func (s *Stream) fail(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("writing %s: %w", s.name, bare(err))
		close(s.broken)
	}
}

// Flush writes what is held back.
func (s *Stream) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.fail(s.w.Flush())
	}
	return s.err
}

// Err is why nothing is written any more; nil while all is well.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Talk is for podd's own lines on the stream: each Write is whole lines, and at
// once. Names lose the suffix in them.
func (s *Stream) Talk(suffix string) io.Writer { return &talk{s, []byte(suffix)} }

type talk struct {
	to     *Stream
	suffix []byte
}

func (t *talk) Write(b []byte) (int, error) {
	text := b
	if len(t.suffix) > 0 {
		text = bytes.ReplaceAll(b, t.suffix, nil)
	}
	text, ends := bytes.CutSuffix(text, []byte("\n"))
	if err := t.to.write(t, "", text, ends); err != nil {
		return 0, err
	}
	return len(b), t.to.Flush()
}
