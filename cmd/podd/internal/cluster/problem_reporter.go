package cluster

import (
	"context"
	"time"
)

// A part is a part of the connection that may fail.
type part int

// In the order of reports: a problem of an earlier part explains those of later ones.
const (
	ofKubeconfig part = iota
	ofIdentity
	ofNode
	ofPods
	ofServices
	ofDrivers
	ofLease
	ofStatus
	ofCSINode
	ofServing
	parts
)

// A problemReporter reports the problem that keeps podd from being a node: once when it
// appears, when it changes and when it is solved.
type problemReporter struct {
	o        *Options
	reports  chan attempt
	problems [parts]problem
	reported problem
	of       part      // of reported
	since    time.Time // of reported
}

type attempt struct {
	of  part
	err error
}

func newProblemReporter(o *Options) *problemReporter {
	return &problemReporter{o: o, reports: make(chan attempt)}
}

// report records the result of the newest attempt of a part.
func (s *problemReporter) report(ctx context.Context, of part, err error) {
	if ctx.Err() != nil {
		return // the attempt was cancelled
	}
	select {
	case s.reports <- attempt{of, err}:
	case <-ctx.Done():
	}
}

func (s *problemReporter) run(ctx context.Context) {
	for {
		select {
		case a := <-s.reports:
			s.update(ctx, a, time.Now())
		case <-ctx.Done():
			return
		}
	}
}

func (s *problemReporter) update(ctx context.Context, a attempt, now time.Time) {
	s.problems[a.of] = newProblem(a.err)
	var worst problem
	var of part
	for i, t := range s.problems {
		if t.kind != fine {
			worst, of = t, part(i)
			break
		}
	}
	if worst.kind == s.reported.kind && (worst.text == s.reported.text || s.isStillValid()) {
		return
	}
	was, since := s.reported, s.since
	s.reported, s.of, s.since = worst, of, now
	switch {
	case worst.kind != fine:
		s.o.Log.Warn("cluster", "why", worst.text)
	case was.kind != fine:
		s.o.Log.Info("the cluster is well again", "after", now.Sub(since).Round(100*time.Millisecond))
	}
	s.o.OnProblem(ctx, worst.text)
}

// isStillValid reports whether the reported message is still correct although there is a
// newer one of the same kind. Messages about pending requests and forbidden operations
// name their object, and must be replaced.
func (s *problemReporter) isStillValid() bool {
	return s.reported.kind != waiting && (s.reported.kind != forbidden || s.problems[s.of].kind == forbidden)
}
