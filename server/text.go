package server

import (
	"context"
	"net/http"
)

// Text is a plain text response. The header is set with the first byte, so that an
// error response is possible until then. Text is not safe for concurrent use.
type Text struct {
	w     http.ResponseWriter
	kind  string
	begun bool
	n     int64
	flush bool // flush after every write
}

// NewText returns a Text with a Content-Type. It sends nothing.
func NewText(w http.ResponseWriter, contentType string) *Text { return &Text{w: w, kind: contentType} }

// Begin sets the header of the response. Further calls do nothing.
func (t *Text) Begin() {
	if !t.begun {
		t.begun = true
		t.w.Header().Set("Content-Type", t.kind)
		t.w.Header().Set("X-Content-Type-Options", "nosniff")
	}
}

// HasBegun reports whether Begin was called, so that an error response is no longer
// possible.
func (t *Text) HasBegun() bool { return t.begun }

// Len returns the number of bytes written.
func (t *Text) Len() int64 { return t.n }

// Flush sends the bytes written so far.
func (t *Text) Flush() error { return http.NewResponseController(t.w).Flush() }

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	t.Begin()
	n, err := t.w.Write(p)
	t.n += int64(n)
	if err == nil && t.flush {
		err = t.Flush()
	}
	return n, err
}

// CopyLogs writes a log. If the log is followed, each write is flushed.
func (t *Text) CopyLogs(ctx context.Context, from LogReader, req LogRequest) error {
	t.flush = req.Follow
	return from.Logs(ctx, req, t)
}
