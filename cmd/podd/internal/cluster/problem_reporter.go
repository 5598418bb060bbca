package cluster

import (
	"context"
	"time"
)

// A part is a part of the connection that may fail.
type part int

// The parts in order of importance: a problem of an earlier part explains those of later ones.
const (
	partKubeconfig part = iota
	partIdentity
	partNode
	partPods
	partServices
	partDrivers
	partLease
	partStatus
	partCSINode
	partServing
	partCount
)

// A problemReporter logs the most important problem of the connection and calls OnProblem:
// when it appears, when it changes and when it is solved.
type problemReporter struct {
	o        *Options
	reports  chan attempt
	problems [partCount]problem
	reported problem
	of       part      // of reported
	since    time.Time // of reported
}

// An attempt is the result of an attempt of a part; err nil means success.
type attempt struct {
	of  part
	err error
}

func newProblemReporter(o *Options) *problemReporter {
	return &problemReporter{o: o, reports: make(chan attempt)}
}

// report records the result of the latest attempt of a part.
func (s *problemReporter) report(ctx context.Context, of part, err error) {
	if ctx.Err() != nil {
		return // the attempt was cancelled
	}
	select {
	case s.reports <- attempt{of, err}:
	case <-ctx.Done():
	}
}

// run handles reports until ctx is done.
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

// update applies a report.
func (s *problemReporter) update(ctx context.Context, a attempt, now time.Time) {
	s.problems[a.of] = newProblem(a.err)
	var worst problem
	var of part
	for i, p := range s.problems {
		if p.kind != noProblem {
			worst, of = p, part(i)
			break
		}
	}
	if worst.kind == s.reported.kind && (worst.message == s.reported.message || s.isStillValid()) {
		return
	}
	before, since := s.reported, s.since
	s.reported, s.of, s.since = worst, of, now
	switch {
	case worst.kind != noProblem:
		s.o.Log.Warn("cluster connection failed", "err", worst.message)
	case before.kind != noProblem:
		s.o.Log.Info("cluster connection works again", "after", now.Sub(since).Round(100*time.Millisecond))
	}
	s.o.OnProblem(ctx, worst.message)
}

// isStillValid reports whether the reported message is still correct if there is a newer one of
// the same kind. Messages about pending and forbidden requests name an object, and must be
// replaced.
func (s *problemReporter) isStillValid() bool {
	return s.reported.kind != csrPending && (s.reported.kind != forbidden || s.problems[s.of].kind == forbidden)
}
