package stats

import (
	"sync"
	"time"
)

// readings are the last ones of the processor time of every cgroup. Safe for
// concurrent use; the zero value has none.
type readings struct {
	mu   sync.Mutex // guards all following fields
	at   time.Time
	last map[string]reading // by the cgroup's name
}

// outdated says that no rate counted from these tells of now.
func (r *readings) outdated(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.IsZero() || now.Sub(r.at) > maxWindow
}

// minWindow is the shortest time between two readings that a rate is counted
// from. The kernel counts in ticks where nothing else makes it look.
const minWindow = firstWindow

// rate gives a sample its rates and keeps its readings for the next. What is not
// in it is forgotten.
func (r *readings) rate(s *Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := s.At.Sub(r.at) >= minWindow // else the next counts from the same
	next := make(map[string]reading, len(r.last))
	s.each(func(c *Cgroup) {
		now := reading{c.Stats().Timestamp, c.Stats().Cpu.Usage.Total}
		last, known := r.last[c.Info.Name]
		if from, ok := since(last, known, c.Info.Spec.CreationTime, now); ok {
			c.NanoCores = rate(from, now)
		}
		if keep || !known {
			last = now
		}
		next[c.Info.Name] = last
	})
	r.last = next
	if keep {
		r.at = s.At
	}
}

// each visits every cgroup of a sample.
func (s *Sample) each(visit func(*Cgroup)) {
	for _, c := range append([]*Cgroup{s.Node, s.AllPods, s.Own}, s.Classes...) {
		if c != nil {
			visit(c)
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		for _, c := range []*Cgroup{p.Cgroup, p.Sandbox} {
			if c != nil {
				visit(c)
			}
		}
		for _, c := range p.Containers {
			if c.Cgroup != nil {
				visit(c.Cgroup)
			}
		}
	}
}
