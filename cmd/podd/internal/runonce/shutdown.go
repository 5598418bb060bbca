package runonce

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/printer"
	"podd/reconcile/plan"
)

// removeTimeout limits the removal of pods that have stopped.
const removeTimeout = time.Minute

// A shutdown ends a run. It removes the pods, and reports the result when all output is
// written.
type shutdown struct {
	*runDriver
	m         runner
	verdict   verdict
	verdictAt time.Time     // time of the verdict
	copied    chan struct{} // closed when all output is copied
	forced    bool
	calls     sync.WaitGroup // calls of the runner
}

// errPodsRemain is returned if the run ends before its pods are removed.
var errPodsRemain = errors.New("some pods were not removed; the next podd with this root directory removes them")

func (e *shutdown) run(ctx context.Context) (*runResult, error) {
	pods := slices.Clone(e.pods)
	e.announce()
	ctx, cancel := context.WithCancel(ctx)
	defer e.calls.Wait()
	defer cancel()
	down := make(chan error, 1)
	e.calls.Go(func() { down <- e.m.Down(ctx) })
	if e.verdict.Outcome == outcomeTimedOut {
		e.forceStop(ctx)
	}
	for i := range e.pods {
		if e.pods[i].Report == nil && !e.isStarted(i) {
			e.out.finish(e.pods[i].Desired.Key)
		}
	}
	limit := time.NewTimer(e.grace() + removeTimeout)
	defer limit.Stop()
	var result *runResult
	var failed error
	copied := e.copied
	for result == nil || down != nil {
		select {
		case <-copied:
			copied = nil
			result = e.result(pods)
			e.o.OnResult(result)
		case failed = <-down:
			down = nil
			for key := range e.out.pods {
				e.out.finish(key)
			}
		case <-e.changes.wake:
			e.take(time.Now())
		case <-e.o.Signals:
			if e.forced {
				return e.giveUp(result, pods)
			}
			e.forceStop(ctx)
			limit.Reset(removeTimeout)
		case <-e.m.Failed():
			failed = errors.Join(e.m.Err(), errPodsRemain)
			return e.finalResult(result, pods), failed
		case <-limit.C:
			return e.giveUp(result, pods)
		}
	}
	return result, failed
}

// isStarted reports whether the pod at index i was passed to the runner.
func (e *shutdown) isStarted(i int) bool { return e.released || e.pods[i].isLongRunning() }

func (e *shutdown) forceStop(ctx context.Context) {
	e.forced = true
	e.calls.Go(func() {
		// ForceStop fails only if the runner fails, and run handles that.
		_ = e.m.ForceStop(ctx)
	})
}

// giveUp returns the result and errPodsRemain.
func (e *shutdown) giveUp(result *runResult, pods []runPod) (*runResult, error) {
	return e.finalResult(result, pods), errPodsRemain
}

// finalResult returns result. If it is nil, finalResult creates the result and reports it.
func (e *shutdown) finalResult(result *runResult, pods []runPod) *runResult {
	e.out.abandon()
	if result == nil {
		result = e.result(pods)
		e.o.OnResult(result)
	}
	return result
}

func (e *shutdown) result(pods []runPod) *runResult {
	s := rowBuilder{verdict: e.verdict, began: e.began, now: e.verdictAt, last: e.out.lastLines}
	r := newResult(e.verdict, s.rows(pods), len(pods), e.out.hasSeveral, e.began, e.verdictAt)
	return &r
}

// announce prints the reason for which the run stops its pods. It prints nothing if no pod
// is running.
func (e *shutdown) announce() {
	var running []string
	for i := range e.pods {
		p := &e.pods[i]
		isFailing := e.verdict.Failure.Pod != nil && e.verdict.Failure.Pod.Desired == p.Desired
		if p.Report != nil && !p.hasEnded() && !isFailing {
			running = append(running, p.Name)
		}
	}
	if len(running) == 0 {
		return
	}
	names := strings.Join(running, ", ")
	if len(running) > 5 {
		names = printer.Plural(len(running), "pod")
	}
	switch v := &e.verdict; v.Outcome {
	case outcomeInterrupted:
		e.printf("interrupted; stopping %s (interrupt again to kill)", names)
	case outcomeEnded:
		e.printf("exit code %d; stopping %s", v.Code, names)
	case outcomeFailing:
		e.printf("%s: %s; stopping %s", v.Failure.Pod.Name, plain(v.Failure.Why), names)
	}
}

// grace returns the longest grace period of the pods.
func (e *shutdown) grace() time.Duration {
	longest := int64(v1.DefaultTerminationGracePeriodSeconds)
	for i := range e.pods {
		if g := e.pods[i].Desired.Spec.Spec.TerminationGracePeriodSeconds; g != nil {
			longest = max(longest, *g)
		}
	}
	return plan.GraceDuration(longest)
}
