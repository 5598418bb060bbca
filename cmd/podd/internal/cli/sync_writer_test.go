package cli

import (
	"strings"
	"sync"
	"testing"
)

// syncWriter is a writer whose content a test can wait for.
type syncWriter struct {
	mu   sync.Mutex // guards said
	said strings.Builder
	more chan struct{} // capacity 1; receives after each write
}

func newSyncWriter() *syncWriter { return &syncWriter{more: make(chan struct{}, 1)} }

func (w *syncWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said.Write(b)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (w *syncWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.String()
}

// await returns when text was written, or fails shortly before the test's deadline.
func (w *syncWriter) await(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(w.text(), text) {
		select {
		case <-w.more:
		case <-t.Context().Done():
			t.Fatalf("%q was not said: %s", text, w.text())
		}
	}
}
