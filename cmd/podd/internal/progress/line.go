// Package progress shows at the foot of a terminal what takes its time, in one line
// that is written anew every second and gone when something else is to be read. Off
// a terminal there is none.
package progress

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Line is that line. Safe for concurrent use; nil is one that is never seen.
type Line struct {
	to    io.Writer
	width func() int
	done  chan struct{}
	drawn sync.WaitGroup

	mu    sync.Mutex // guards all following fields
	text  func(now time.Time) string
	shown bool
	amid  bool // the last that was written began a line and has not ended it
}

// New is the Line of w; nil where w is no terminal, or one that cannot write over
// what it has. Close ends it.
func New(w io.Writer) *Line {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return begin(w, time.Second, func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 {
			return 80
		}
		return width
	})
}

func begin(to io.Writer, every time.Duration, width func() int) *Line {
	l := &Line{to: to, width: width, done: make(chan struct{})}
	l.drawn.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-l.done:
				return
			case <-tick.C:
				l.mu.Lock()
				l.draw()
				l.mu.Unlock()
			}
		}
	})
	return l
}

// Set has the line show text, which is asked again every second; nil, or one that
// is empty, shows nothing.
func (l *Line) Set(text func(now time.Time) string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width != nil { // not closed
		l.text = text
		l.draw()
	}
}

// Close takes the line away for good. It may be called more than once.
func (l *Line) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	closed := l.text == nil && l.width == nil
	l.text, l.width = nil, nil
	l.clear()
	l.mu.Unlock()
	if !closed {
		close(l.done)
		l.drawn.Wait()
	}
}

// Writer is w with the line out of the way of what is written.
func (l *Line) Writer(w io.Writer) io.Writer {
	if l == nil {
		return w
	}
	return writer{l, w}
}

type writer struct {
	line *Line
	to   io.Writer
}

func (w writer) Write(b []byte) (int, error) {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	w.line.clear()
	n, err := w.to.Write(b)
	if len(b) > 0 {
		w.line.amid = !bytes.HasSuffix(b, []byte("\n"))
	}
	w.line.draw()
	return n, err
}

// draw and clear are for who holds mu. A terminal that is gone has nobody to tell.
func (l *Line) draw() {
	text := ""
	if l.text != nil {
		text = l.text(time.Now())
	}
	if text == "" || l.amid {
		l.clear()
		return
	}
	if r, most := []rune(text), l.width()-1; len(r) > most {
		text = string(r[:max(most-1, 0)]) + "…"
	}
	_, _ = io.WriteString(l.to, "\r"+text+"\x1b[K")
	l.shown = true
}

func (l *Line) clear() {
	if l.shown {
		_, _ = io.WriteString(l.to, "\r\x1b[K")
		l.shown = false
	}
}
