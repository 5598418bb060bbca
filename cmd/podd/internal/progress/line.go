// Package progress shows a status line at the bottom of a terminal. The line is updated each
// second and hidden while other output is written. If the output is not a terminal, there is
// no status line.
package progress

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// A Line is the status line of a terminal. It is safe for concurrent use. The methods of a nil
// *Line do nothing, except Writer, which returns its argument.
type Line struct {
	to      io.Writer
	width   func() int
	closing chan struct{}  // closed by Close
	drawing sync.WaitGroup // waits for the goroutine that draws the line every second

	mu              sync.Mutex // guards all following fields
	text            func(now time.Time) string
	isShown         bool
	isOutputPartial bool // the last write did not end with a newline
}

// New returns a Line at the bottom of the terminal w. It returns nil if w is not a terminal, or if
// the terminal cannot overwrite a line (TERM=dumb). The caller must close the Line.
func New(w io.Writer) *Line {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return start(w, time.Second, func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 {
			return 80
		}
		return width
	})
}

// start returns a Line that is drawn at an interval. width returns the width of the terminal in
// characters.
func start(to io.Writer, interval time.Duration, width func() int) *Line {
	l := &Line{to: to, width: width, closing: make(chan struct{})}
	l.drawing.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-l.closing:
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

// SetText sets the function that returns the text of the line. The function is called each second.
// If the function is nil or returns "", the line is hidden.
func (l *Line) SetText(text func(now time.Time) string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width != nil { // the Line is not closed
		l.text = text
		l.draw()
	}
}

// Close removes the line and stops its goroutine. It may be called more than once.
func (l *Line) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	isClosed := l.text == nil && l.width == nil
	l.text, l.width = nil, nil
	l.clear()
	l.mu.Unlock()
	if !isClosed {
		close(l.closing)
		l.drawing.Wait()
	}
}

// Writer returns a writer to w that hides the line while it writes.
func (l *Line) Writer(w io.Writer) io.Writer {
	if l == nil {
		return w
	}
	return writer{l, w}
}

// A writer writes to a terminal or a pipe and hides the line during each write.
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
		w.line.isOutputPartial = !bytes.HasSuffix(b, []byte("\n"))
	}
	w.line.draw()
	return n, err
}

// draw draws the line with its current text, or hides the line if there is no text. The caller
// must hold mu. Errors are ignored, because they mean that the terminal was closed.
func (l *Line) draw() {
	text := ""
	if l.text != nil {
		text = l.text(time.Now())
	}
	if text == "" || l.isOutputPartial {
		l.clear()
		return
	}
	if r, limit := []rune(text), l.width()-1; len(r) > limit {
		text = string(r[:max(limit-1, 0)]) + "…"
	}
	_, _ = io.WriteString(l.to, "\r"+text+"\x1b[K")
	l.isShown = true
}

// clear hides the line. The caller must hold mu.
func (l *Line) clear() {
	if l.isShown {
		_, _ = io.WriteString(l.to, "\r\x1b[K")
		l.isShown = false
	}
}
