// Package syncbuffer contains a buffer for the output of code that runs while a test reads it.
package syncbuffer

import (
	"strings"
	"sync"
)

// A Buffer contains everything that was written to it. The zero Buffer is empty and ready for use.
// Its methods may be called concurrently.
type Buffer struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns everything that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
