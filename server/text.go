package server

import (
	"context"
	"net/http"
)

// Text is an answer in plain text. Its header goes with the first byte, so that
// until then an error can still be the answer. For one goroutine.
type Text struct {
	w     http.ResponseWriter
	kind  string
	begun bool
	n     int64
	each  bool // flush after every write
}

// NewText makes a Text of a Content-Type. Nothing is sent yet.
func NewText(w http.ResponseWriter, contentType string) *Text { return &Text{w: w, kind: contentType} }

// Begin makes the header part of the answer; again, it does nothing.
func (t *Text) Begin() {
	if !t.begun {
		t.begun = true
		t.w.Header().Set("Content-Type", t.kind)
		t.w.Header().Set("X-Content-Type-Options", "nosniff")
	}
}

// Begun says that nothing else can be the answer any more.
func (t *Text) Begun() bool { return t.begun }

// Len is how many bytes of the text were written.
func (t *Text) Len() int64 { return t.n }

// Flush sends what was written.
func (t *Text) Flush() error { return http.NewResponseController(t.w).Flush() }

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	t.Begin()
	n, err := t.w.Write(p)
	t.n += int64(n)
	if err == nil && t.each {
		err = t.Flush()
	}
	return n, err
}

// CopyLogs writes a log; of one that is followed, each write is sent at once.
func (t *Text) CopyLogs(ctx context.Context, from LogReader, req LogRequest) error {
	t.each = req.Follow
	return from.Logs(ctx, req, t)
}
