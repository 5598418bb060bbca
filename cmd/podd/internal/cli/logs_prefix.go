package cli

import (
	"bytes"
	"io"
	"sync"
)

// maxPartialLine limits the buffer for an unterminated line in bytes. A longer line is split,
// and each part gets a prefix.
const maxPartialLine = 64 << 10

// A prefixWriter writes a prefix before every line. It buffers incomplete lines.
type prefixWriter struct {
	out         io.Writer
	mu          *sync.Mutex // guards out; shared by all writers to the same output
	prefix      string
	partialLine []byte // the buffered beginning of an incomplete line
}

// Write implements io.Writer.
func (p *prefixWriter) Write(b []byte) (int, error) {
	n := len(b)
	var out []byte
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		p.partialLine = append(p.partialLine, line...)
		if !whole && len(p.partialLine) < maxPartialLine {
			break
		}
		out = append(append(append(out, p.prefix...), p.partialLine...), '\n')
		p.partialLine, b = p.partialLine[:0], rest
		if !whole {
			break
		}
	}
	return n, p.write(out)
}

// flush writes the buffered incomplete line.
func (p *prefixWriter) flush() error {
	if len(p.partialLine) == 0 {
		return nil
	}
	out := append(append([]byte(p.prefix), p.partialLine...), '\n')
	p.partialLine = nil
	return p.write(out)
}

// write writes complete lines to the shared output.
func (p *prefixWriter) write(out []byte) error {
	if len(out) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.out.Write(out)
	return err
}
