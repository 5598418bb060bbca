package stats

import (
	"sync"
	"time"
)

// readings contains the last CPU time readings of every cgroup. Safe for concurrent use;
// the zero value is empty.
type readings struct {
	mu   sync.Mutex // guards all following fields
	at   time.Time
	last map[string]reading // by the cgroup's name
}

// outdated reports whether the readings are too old for computing current rates.
func (r *readings) outdated(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.IsZero() || now.Sub(r.at) > maxWindow
}

// minWindow is the minimum time between two readings for a rate, because the kernel may
// update counters only at its timer ticks.
const minWindow = firstWindow

// rate sets the rates of a sample and stores its readings for the next one. Cgroups that
// are not in the sample are dropped.
func (r *readings) rate(s *Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := s.At.Sub(r.at) >= minWindow // otherwise the next sample uses the same readings
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

// each calls visit for every cgroup of a sample.
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
