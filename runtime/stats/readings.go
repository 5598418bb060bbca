package stats

import (
	"sync"
	"time"
)

// readings contains the last reading of the CPU time of every cgroup. It is safe for concurrent
// use. The zero value is empty.
type readings struct {
	mu   sync.Mutex         // guards all following fields
	at   time.Time          // time of the readings in last; zero before the first sample
	last map[string]reading // by cgroup name
}

// isOutdated reports whether the readings are too old to compute current rates from them.
func (r *readings) isOutdated(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.IsZero() || now.Sub(r.at) > maxRateWindow
}

// minRateWindow is the minimum time between two readings for a rate. The kernel may update
// counters only at its timer ticks.
const minRateWindow = firstRateWindow

// setRates sets the rates of a sample. If at least minRateWindow has passed, it stores the sample's
// readings, from which the next rates are computed. Otherwise it keeps the earlier readings and only adds
// those of new cgroups. It drops the readings of cgroups that are not in the sample.
func (r *readings) setRates(s *Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isStored := s.At.Sub(r.at) >= minRateWindow
	next := make(map[string]reading, len(r.last))
	s.eachCgroup(func(c *Cgroup) {
		current := reading{c.Stats().Timestamp, c.Stats().Cpu.Usage.Total}
		last, hasLastReading := r.last[c.Info.Name]
		if from, ok := baseReading(last, hasLastReading, c.Info.Spec.CreationTime, current); ok {
			c.NanoCores = cpuRate(from, current)
		}
		if isStored || !hasLastReading {
			last = current
		}
		next[c.Info.Name] = last
	})
	r.last = next
	if isStored {
		r.at = s.At
	}
}

// eachCgroup calls visit for every cgroup of a sample.
func (s *Sample) eachCgroup(visit func(*Cgroup)) {
	for _, c := range append([]*Cgroup{s.Node, s.AllPodsCgroup, s.OwnCgroup, s.RuntimeCgroup, s.SystemCgroup}, s.QoSClassCgroups...) {
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
