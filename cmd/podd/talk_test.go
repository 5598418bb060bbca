package main

import (
	"strings"
	"sync"
	"testing"
)

// talk is an output that a test can wait on.
type talk struct {
	mu   sync.Mutex // guards said
	said strings.Builder
	more chan struct{} // has an element when something was said
}

func newTalk() *talk { return &talk{more: make(chan struct{}, 1)} }

func (w *talk) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said.Write(b)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (w *talk) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.String()
}

// await returns when text was said, and fails when the test is about to end.
func (w *talk) await(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(w.text(), text) {
		select {
		case <-w.more:
		case <-t.Context().Done():
			t.Fatalf("%q was not said: %s", text, w.text())
		}
	}
}
