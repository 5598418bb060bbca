package stats

import (
	"context"
	"errors"
	"sync"
)

// background is the measurement of disks in the background. Only Close waits for its end.
type background struct {
	mu     sync.Mutex   // guards all following fields
	now    *measurement // nil: no measurement is in progress
	last   *Disk        // nil: nothing was measured yet
	closed bool
}

// measurement is a measurement. It has its result when done is closed.
type measurement struct {
	done chan struct{}
	disk *Disk
	err  error
}

var errClosed = errors.New("measuring disks: the sampler is closed")

// DiskSoon measures disks for callers that cannot wait longer than ctx. When ctx is done,
// it returns the previous result, while the measurement continues for the next caller.
func (s *Sampler) DiskSoon(ctx context.Context) (*Disk, error) {
	m, last := s.startMeasurement()
	if m == nil {
		return nil, errClosed
	}
	select {
	case <-m.done:
		return m.disk, m.err
	case <-ctx.Done():
		if last != nil {
			return last, nil
		}
		return nil, ctx.Err()
	}
}

// startMeasurement returns the measurement in progress and the last result. It starts a
// measurement if necessary; after Close it returns nil for it.
func (s *Sampler) startMeasurement() (*measurement, *Disk) {
	s.background.mu.Lock()
	defer s.background.mu.Unlock()
	if s.background.now == nil && !s.background.closed {
		m := &measurement{done: make(chan struct{})}
		s.background.now = m
		go s.measure(m)
	}
	return s.background.now, s.background.last
}

func (s *Sampler) measure(m *measurement) {
	defer close(m.done)
	m.disk, m.err = s.Disk(s.life)
	s.background.mu.Lock()
	defer s.background.mu.Unlock()
	s.background.now = nil
	if m.err == nil {
		s.background.last = m.disk
	}
}

// Close cancels the measurement of disks and waits for its end.
func (s *Sampler) Close() {
	s.end()
	s.background.mu.Lock()
	s.background.closed = true
	m := s.background.now
	s.background.mu.Unlock()
	if m != nil {
		<-m.done
	}
}
