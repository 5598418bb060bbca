package stats

import (
	"context"
	"errors"
	"sync"
)

// A diskMeasurer contains the state of the disk measurements that MeasureDisksWithin starts.
type diskMeasurer struct {
	mu         sync.Mutex   // guards all following fields
	inProgress *measurement // nil if no measurement is in progress
	lastDisk   *Disk        // nil before the first result
	isClosed   bool
}

// A measurement is a measurement of disks in the background. disk and err are set when done is
// closed.
type measurement struct {
	done chan struct{} // closed when disk and err are set
	disk *Disk
	err  error
}

var errClosed = errors.New("measuring disks: podd is stopping")

// MeasureDisksWithin measures disks like MeasureDisks, but waits at most until ctx is done. If the
// measurement is not complete by then, MeasureDisksWithin returns the previous result, or ctx.Err()
// if there is none. The measurement continues, and the next caller gets its result.
func (s *Sampler) MeasureDisksWithin(ctx context.Context) (*Disk, error) {
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

// startMeasurement returns the measurement in progress and the last result, which may be
// nil. It starts a measurement if none is in progress. After Close, m is nil.
func (s *Sampler) startMeasurement() (m *measurement, last *Disk) {
	s.diskMeasurer.mu.Lock()
	defer s.diskMeasurer.mu.Unlock()
	if s.diskMeasurer.inProgress == nil && !s.diskMeasurer.isClosed {
		m := &measurement{done: make(chan struct{})}
		s.diskMeasurer.inProgress = m
		go s.measure(m)
	}
	return s.diskMeasurer.inProgress, s.diskMeasurer.lastDisk
}

// measure measures disks and sets the result of m.
func (s *Sampler) measure(m *measurement) {
	defer close(m.done)
	m.disk, m.err = s.MeasureDisks(s.lifetime)
	s.diskMeasurer.mu.Lock()
	defer s.diskMeasurer.mu.Unlock()
	s.diskMeasurer.inProgress = nil
	if m.err == nil {
		s.diskMeasurer.lastDisk = m.disk
	}
}

// Close cancels the measurement of disks in progress and waits until it has stopped.
func (s *Sampler) Close() {
	s.stop()
	s.diskMeasurer.mu.Lock()
	s.diskMeasurer.isClosed = true
	m := s.diskMeasurer.inProgress
	s.diskMeasurer.mu.Unlock()
	if m != nil {
		<-m.done
	}
}
