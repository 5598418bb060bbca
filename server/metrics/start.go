package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// startCounts are of how long pods take to start. They know those pods alone that
// have not started yet.
type startCounts struct {
	took, own, total, waited prometheus.Histogram
	*starts
}

func newStartCounts() startCounts {
	return startCounts{
		took:   histogram("kubelet_pod_start_duration_seconds", "From a pod's first sight until all of its containers ran.", startBuckets),
		total:  histogram("kubelet_pod_start_total_duration_seconds", "From a pod's first sight until all of its containers were seen to run.", startBuckets),
		own:    histogram("kubelet_pod_start_sli_duration_seconds", "The same without the time in which images came or init containers ran.", startBuckets),
		waited: histogram("kubelet_pod_worker_start_duration_seconds", "From a pod's first sight until its worker began with it.", prometheus.DefBuckets),
		starts: &starts{of: map[types.UID]*start{}},
	}
}

func (c startCounts) all() []prometheus.Collector {
	return []prometheus.Collector{c.took, c.own, c.total, c.waited}
}

// starts are of the pods that are being started, by UID.
type starts struct {
	mu sync.Mutex // guards all following fields
	of map[types.UID]*start
}

type start struct {
	seen  time.Time
	began bool   // its worker did: what was found running podd did not start
	pulls []span // of its images
}

// span is a time in which something else was waited for.
type span struct{ from, to time.Time }

// Began tells that the worker of a pod makes something of it, since at.
func (c startCounts) Began(uid types.UID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.of[uid]; s != nil && !s.began {
		s.began = true
		c.waited.Observe(max(at.Sub(s.seen), 0).Seconds())
	}
}

// Pulls tells that an image of a pod came, or did not, in this time.
func (c startCounts) Pulls(uid types.UID, from, to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.of[uid]; s != nil {
		if n := len(s.pulls); n == mostSpans {
			s.pulls[n-1].to = to // it is tried again and again
			return
		}
		s.pulls = append(s.pulls, span{from, to})
	}
}

// mostSpans is how many are kept of a pod.
const mostSpans = 64

// shown follows a pod from its first sight to its start, see Metrics.Pod.
func (c startCounts) shown(before, after *server.PodView, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := after.Pod
	if before != nil && before.Pod.UID != p.UID {
		delete(c.of, before.Pod.UID)
	}
	if p.UID == "" {
		return
	}
	s := c.of[p.UID]
	switch {
	case p.DeletionTimestamp != nil || p.Status.Phase == v1.PodFailed || restarts(p) > 0:
		delete(c.of, p.UID)
	case s == nil && !ran(p) && (before == nil || before.Pod.UID != p.UID):
		c.of[p.UID] = &start{seen: now}
	case s != nil && ran(p):
		delete(c.of, p.UID)
		if !s.began {
			return
		}
		if t := p.Status.StartTime; t != nil {
			c.took.Observe(max(now.Sub(t.Time), 0).Seconds())
		}
		total := max(now.Sub(s.seen), 0)
		c.total.Observe(total.Seconds())
		c.own.Observe(max(total-covered(append(s.pulls, inits(p)...)), 0).Seconds())
	}
}

// ended drops a pod that is no more.
func (c startCounts) ended(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, uid)
}

// inits are the times in which init containers ran to their ends.
func inits(p *v1.Pod) []span {
	var all []span
	for _, c := range p.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil {
			all = append(all, span{t.StartedAt.Time, t.FinishedAt.Time})
		}
	}
	return all
}

// covered is how long at least one of the spans was.
func covered(all []span) (sum time.Duration) {
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	var until time.Time
	for _, s := range all {
		if s.from.Before(until) {
			s.from = until
		}
		if s.to.After(s.from) {
			sum += s.to.Sub(s.from)
			until = s.to
		}
	}
	return sum
}

// ran says that all regular containers run, or have.
func ran(p *v1.Pod) bool {
	for _, c := range p.Status.ContainerStatuses {
		if c.ContainerID == "" {
			return false
		}
	}
	return len(p.Status.ContainerStatuses) == len(p.Spec.Containers)
}

func restarts(p *v1.Pod) (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}
