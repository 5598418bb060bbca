package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// startRecorder records when containers start. Each container writes the name of its pod as a line
// to a FIFO. The bench keeps the FIFO open for reading and writing, so that writers never block.
type startRecorder struct {
	path   string
	fifo   *os.File
	reader sync.WaitGroup

	mu        sync.Mutex // guards all following fields
	lastStart map[string]time.Time
	lineRead  chan struct{} // closed and replaced when a line has been read
}

// newStartRecorder creates the FIFO and starts to read it.
func newStartRecorder(path string) (*startRecorder, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("creating the FIFO to which containers report their start: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the FIFO to which containers report their start: %w", err)
	}
	s := &startRecorder{path: path, fifo: f, lastStart: map[string]time.Time{}, lineRead: make(chan struct{})}
	s.reader.Go(s.read)
	return s, nil
}

func (s *startRecorder) read() {
	for lines := bufio.NewScanner(s.fifo); lines.Scan(); {
		now := time.Now()
		s.mu.Lock()
		s.lastStart[lines.Text()] = now
		close(s.lineRead)
		s.lineRead = make(chan struct{})
		s.mu.Unlock()
	}
}

func (s *startRecorder) close() error {
	err := s.fifo.Close()
	s.reader.Wait()
	return err
}

// waitFor waits until each of the named pods has started. It ignores starts before the time
// notBefore. It returns the time of the last start.
func (s *startRecorder) waitFor(ctx context.Context, names []string, notBefore time.Time) (time.Time, error) {
	for {
		s.mu.Lock()
		news, newest, missingPod := s.lineRead, notBefore, ""
		for _, name := range names {
			at := s.lastStart[name]
			if !at.After(notBefore) {
				missingPod = name
				break
			}
			if at.After(newest) {
				newest = at
			}
		}
		s.mu.Unlock()
		if missingPod == "" {
			return newest, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting until pod %s runs: %w", missingPod, ctx.Err())
		}
	}
}
