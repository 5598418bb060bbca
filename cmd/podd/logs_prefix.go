package main

import (
	"bytes"
	"io"
	"sync"
)

// maxHeld is how much of a line without an end is held back; a longer one is
// passed on in pieces, so that its prefix may appear amid it.
const maxHeld = 64 << 10

// prefixed puts a prefix before every line and passes on whole lines only.
type prefixed struct {
	to     io.Writer
	mu     *sync.Mutex // shared by all that write to to
	prefix string
	held   []byte // the beginning of a line
}

func (p *prefixed) Write(b []byte) (int, error) {
	n := len(b)
	var out []byte
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		p.held = append(p.held, line...)
		if !whole && len(p.held) < maxHeld {
			break
		}
		out = append(append(append(out, p.prefix...), p.held...), '\n')
		p.held, b = p.held[:0], rest
		if !whole {
			break
		}
	}
	return n, p.pass(out)
}

// finish passes on a last line that has no end.
func (p *prefixed) finish() error {
	if len(p.held) == 0 {
		return nil
	}
	out := append(append([]byte(p.prefix), p.held...), '\n')
	p.held = nil
	return p.pass(out)
}

func (p *prefixed) pass(out []byte) error {
	if len(out) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.to.Write(out)
	return err
}
