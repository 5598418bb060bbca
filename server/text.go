package server

import (
	"context"
	"net/http"
)

// TextResponse is a plain text response. The header is set when the first byte is written, so that
// an error response is possible until then. TextResponse is not safe for concurrent use.
type TextResponse struct {
	w           http.ResponseWriter
	contentType string
	hasBegun    bool
	n           int64
	autoFlush   bool // whether to flush after every write
}

// NewTextResponse returns a TextResponse with a Content-Type. It sends nothing.
func NewTextResponse(w http.ResponseWriter, contentType string) *TextResponse {
	return &TextResponse{w: w, contentType: contentType}
}

// Begin sets the header of the response. Further calls do nothing.
func (t *TextResponse) Begin() {
	if !t.hasBegun {
		t.hasBegun = true
		t.w.Header().Set("Content-Type", t.contentType)
		t.w.Header().Set("X-Content-Type-Options", "nosniff")
	}
}

// HasBegun reports whether Begin was called, so that an error response is no longer
// possible.
func (t *TextResponse) HasBegun() bool { return t.hasBegun }

// Len returns the number of bytes written.
func (t *TextResponse) Len() int64 { return t.n }

// Flush sends the bytes written so far.
func (t *TextResponse) Flush() error { return http.NewResponseController(t.w).Flush() }

// Write implements io.Writer.
func (t *TextResponse) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	t.Begin()
	n, err := t.w.Write(p)
	t.n += int64(n)
	if err == nil && t.autoFlush {
		err = t.Flush()
	}
	return n, err
}

// CopyLogs writes a log. If the log is followed, each write is flushed.
func (t *TextResponse) CopyLogs(ctx context.Context, logs LogReader, req LogRequest) error {
	t.autoFlush = req.Follow
	return logs.Logs(ctx, req, t)
}
