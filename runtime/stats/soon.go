package stats

import (
	"context"
	"errors"
	"sync"
)

// soon is the measuring of disks that nobody waits for to its end but Close.
type soon struct {
	mu     sync.Mutex // guards all following fields
	now    *measuring // nil: nothing is being measured
	last   *Disk      // nil: nothing was measured yet
	closed bool
}

// measuring has its result once done is closed.
type measuring struct {
	done chan struct{}
	disk *Disk
	err  error
}

var errClosed = errors.New("disks are not measured any more")

// DiskSoon measures disks for those who cannot wait longer than ctx: they get what
// was measured before, while the measuring goes on for the next one.
func (s *Sampler) DiskSoon(ctx context.Context) (*Disk, error) {
	m, last := s.measuring()
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

// measuring is what goes on now, begun if need be, nil after Close; and what was
// measured last.
func (s *Sampler) measuring() (*measuring, *Disk) {
	s.soon.mu.Lock()
	defer s.soon.mu.Unlock()
	if s.soon.now == nil && !s.soon.closed {
		m := &measuring{done: make(chan struct{})}
		s.soon.now = m
		go s.measure(m)
	}
	return s.soon.now, s.soon.last
}

func (s *Sampler) measure(m *measuring) {
	defer close(m.done)
	m.disk, m.err = s.Disk(s.life)
	s.soon.mu.Lock()
	defer s.soon.mu.Unlock()
	s.soon.now = nil
	if m.err == nil {
		s.soon.last = m.disk
	}
}

// Close ends the measuring of disks, and waits for its end.
func (s *Sampler) Close() {
	s.end()
	s.soon.mu.Lock()
	s.soon.closed = true
	m := s.soon.now
	s.soon.mu.Unlock()
	if m != nil {
		<-m.done
	}
}
