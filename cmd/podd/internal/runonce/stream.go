package runonce

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sync"
)

// A lineStream is an output stream to which several authors write lines: containers and
// podd. It is safe for concurrent use.
type lineStream struct {
	name   string
	failed chan struct{} // closed when err is set

	mu sync.Mutex // guards all following fields
	w  *bufio.Writer
	// openAuthor is the author that wrote the last part of an unterminated line, or nil if there
	// is no such line.
	openAuthor any
	err        error // the first error; later writes are dropped
}

// newLineStream returns a lineStream that writes to w. Errors contain name, such as "stdout".
func newLineStream(name string, w io.Writer) *lineStream {
	return &lineStream{name: name, w: bufio.NewWriterSize(w, 256<<10), failed: make(chan struct{})}
}

// write writes a line of an author. If endsLine is false, text is only a part of the line. write
// writes the prefix before the first part of a line, and again before a later part if another
// author has written in between.
func (s *lineStream) write(author any, prefix string, text []byte, endsLine bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.openAuthor != author {
		if s.openAuthor != nil {
			s.writeText("\n")
		}
		s.writeText(prefix)
	}
	s.openAuthor = author
	if s.err == nil {
		_, err := s.w.Write(text)
		s.fail(err)
	}
	if endsLine {
		s.writeText("\n")
		s.openAuthor = nil
	}
	return s.err
}

// writeText writes text unless a write has failed.
func (s *lineStream) writeText(text string) {
	if s.err == nil {
		_, err := s.w.WriteString(text)
		s.fail(err)
	}
}

// fail records the first error of a write.
func (s *lineStream) fail(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("writing %s: %w", s.name, withoutPath(err))
		close(s.failed)
	}
}

// Flush writes the buffered data.
func (s *lineStream) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.fail(s.w.Flush())
	}
	return s.err
}

// Err returns the first error of a write, or nil.
func (s *lineStream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// messageWriter returns a writer for messages of podd. Each Write must contain complete lines.
// The writer removes trimSuffix, the suffix of the run in the names of pods, from the text and
// flushes the stream. If trimSuffix is "", the writer does not change the text, which may quote the
// output of containers.
func (s *lineStream) messageWriter(trimSuffix string) io.Writer {
	return &messageWriter{s, []byte(trimSuffix)}
}

// A messageWriter writes messages of podd to a lineStream.
type messageWriter struct {
	to         *lineStream
	trimSuffix []byte
}

// Write implements io.Writer.
func (t *messageWriter) Write(b []byte) (int, error) {
	text := b
	if len(t.trimSuffix) > 0 {
		text = bytes.ReplaceAll(b, t.trimSuffix, nil)
	}
	text, endsLine := bytes.CutSuffix(text, []byte("\n"))
	if err := t.to.write(t, "", text, endsLine); err != nil {
		return 0, err
	}
	return len(b), t.to.Flush()
}
