package cluster

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// A connectionPart is a part of the connection that can fail independently.
type connectionPart int

// The parts in order of importance: a problem of one part explains the problems of the parts
// after it.
const (
	partKubeconfig connectionPart = iota
	partIdentity
	partNode
	partPods
	partServices
	partDrivers
	partLease
	partStatus
	partCSINode
	partServing
	partConfigSource
	partCount
)

// A problemReporter logs the most important problem of the connection and calls OnProblem when
// this problem appears, changes or is solved.
type problemReporter struct {
	o               *Options
	results         chan partResult
	problems        [partCount]problem
	reportedProblem problem        // the problem that was reported last
	reportedPart    connectionPart // the part that has the reported problem
	reportedAt      time.Time
	// isUnreachable reports whether a part has a problem of kind unreachable or untrusted. It may be read
	// concurrently.
	isUnreachable atomic.Bool
}

// A partResult is the result of the latest request of a part of the connection, such as the renewal of the
// lease. A nil err means success.
type partResult struct {
	part connectionPart
	err  error
}

// newProblemReporter returns a problemReporter. The caller must call run, because report blocks
// until run receives the result.
func newProblemReporter(o *Options) *problemReporter {
	return &problemReporter{o: o, results: make(chan partResult)}
}

// report passes the result of an attempt of a part to the method run. It blocks until run receives
// the result or ctx is done.
func (s *problemReporter) report(ctx context.Context, p connectionPart, err error) {
	if ctx.Err() != nil {
		return // the attempt was cancelled
	}
	select {
	case s.results <- partResult{p, err}:
	case <-ctx.Done():
	}
}

// forPart returns a function that reports the result of an attempt of the part p.
func (s *problemReporter) forPart(p connectionPart) func(ctx context.Context, err error) {
	return func(ctx context.Context, err error) { s.report(ctx, p, err) }
}

// run handles reports until ctx is done.
func (s *problemReporter) run(ctx context.Context) {
	for {
		select {
		case r := <-s.results:
			s.update(ctx, r, time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// update records a result and reports the most important problem if it has changed.
func (s *problemReporter) update(ctx context.Context, r partResult, now time.Time) {
	s.problems[r.part] = newProblem(r.err)
	s.isUnreachable.Store(slices.ContainsFunc(s.problems[:], func(p problem) bool { return p.kind == unreachable || p.kind == untrusted }))
	var worst problem
	var worstPart connectionPart
	for i, p := range s.problems {
		if p.kind != noProblem {
			worst, worstPart = p, connectionPart(i)
			break
		}
	}
	if worst.kind == s.reportedProblem.kind && (worst.message == s.reportedProblem.message || s.isStillValid()) {
		return
	}
	before, beforeAt := s.reportedProblem, s.reportedAt
	s.reportedProblem, s.reportedPart, s.reportedAt = worst, worstPart, now
	switch {
	case worst.kind != noProblem:
		s.o.Log.Warn("cluster connection failed", "err", worst.message)
	case before.kind != noProblem:
		s.o.Log.Info("cluster connection works again", "after", now.Sub(beforeAt).Round(100*time.Millisecond))
	}
	s.o.OnProblem(ctx, worst.message)
}

// isStillValid reports whether the reported message may remain. The caller must have checked that
// the most important problem has the same kind as the reported problem and a different message. A
// message about a pending request must be replaced, because the message names the request. A
// message about a forbidden request must be replaced if the part that had the reported problem no
// longer has a problem of this kind.
func (s *problemReporter) isStillValid() bool {
	return s.reportedProblem.kind != csrPending && (s.reportedProblem.kind != forbidden || s.problems[s.reportedPart].kind == forbidden)
}
