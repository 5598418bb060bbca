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

// starts hears from containers that they run: each writes its pod's name, one
// line, into a FIFO that the bench keeps open in both directions, so that no
// writer ever waits.
type starts struct {
	path   string
	fifo   *os.File
	reader sync.WaitGroup

	mu   sync.Mutex // guards all following fields
	last map[string]time.Time
	news chan struct{} // closed when a line came
}

func newStarts(path string) (*starts, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("making the FIFO that containers write to: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the FIFO that containers write to: %w", err)
	}
	s := &starts{path: path, fifo: f, last: map[string]time.Time{}, news: make(chan struct{})}
	s.reader.Go(s.read)
	return s, nil
}

func (s *starts) read() {
	for lines := bufio.NewScanner(s.fifo); lines.Scan(); {
		now := time.Now()
		s.mu.Lock()
		s.last[lines.Text()] = now
		close(s.news)
		s.news = make(chan struct{})
		s.mu.Unlock()
	}
}

func (s *starts) close() error {
	err := s.fifo.Close()
	s.reader.Wait()
	return err
}

// all waits until each of the named pods started after since, and returns when
// the last one did.
func (s *starts) all(ctx context.Context, names []string, since time.Time) (time.Time, error) {
	for {
		s.mu.Lock()
		news, newest, missing := s.news, since, ""
		for _, name := range names {
			at := s.last[name]
			if !at.After(since) {
				missing = name
				break
			}
			if at.After(newest) {
				newest = at
			}
		}
		s.mu.Unlock()
		if missing == "" {
			return newest, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting until pod %s runs: %w", missing, ctx.Err())
		}
	}
}
