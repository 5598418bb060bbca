package cli

import (
	"strings"
	"sync"
	"testing"
)

// A syncWriter stores the text that a verb writes in another goroutine. Tests call await to wait for a
// part of the text.
type syncWriter struct {
	mu      sync.Mutex // guards content
	content strings.Builder
	written chan struct{} // capacity 1; receives after each write
}

func newSyncWriter() *syncWriter { return &syncWriter{written: make(chan struct{}, 1)} }

func (w *syncWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.content.Write(b)
	select {
	case w.written <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (w *syncWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.content.String()
}

// await waits until the written text contains text. It fails the test if the context of the test ends
// first.
func (w *syncWriter) await(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(w.text(), text) {
		select {
		case <-w.written:
		case <-t.Context().Done():
			t.Fatalf("got the text %q, want it to contain %q", w.text(), text)
		}
	}
}
