package runonce

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
)

// removeTimeout limits the removal of pods that have stopped.
const removeTimeout = time.Minute

// shutdown is the end of a run: it removes everything, and reports the result as soon as
// all output is written.
type shutdown struct {
	*Run
	m         Runner
	verdict   Verdict
	verdictAt time.Time     // time of the verdict
	copied    chan struct{} // closed when all output is copied
	forced    bool
	calls     sync.WaitGroup // calls of the Runner
}

var errLeft = errors.New("pods are left; the next podd on this root directory removes them")

func (e *shutdown) run(ctx context.Context) (*Result, error) {
	pods := slices.Clone(e.pods)
	e.announce()
	ctx, cancel := context.WithCancel(ctx)
	defer e.calls.Wait()
	defer cancel()
	down := make(chan error, 1)
	e.calls.Go(func() { down <- e.m.Down(ctx) })
	if e.verdict.Outcome == TimedOut {
		e.forceStop(ctx)
	}
	for i := range e.pods {
		if e.pods[i].Report == nil && !e.isStarted(i) {
			e.out.finish(e.pods[i].Desired.Key)
		}
	}
	limit := time.NewTimer(e.grace() + removeTimeout)
	defer limit.Stop()
	var result *Result
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
			failed = errors.Join(e.m.Err(), errLeft)
			return e.finalResult(result, pods), failed
		case <-limit.C:
			return e.giveUp(result, pods)
		}
	}
	return result, failed
}

// isStarted reports whether the pod was passed to the Runner.
func (e *shutdown) isStarted(i int) bool { return e.released || e.pods[i].isLongRunning() }

func (e *shutdown) forceStop(ctx context.Context) {
	e.forced = true
	e.calls.Go(func() {
		// It fails only if the Runner fails, which is handled.
		_ = e.m.ForceStop(ctx)
	})
}

// giveUp returns although pods are left.
func (e *shutdown) giveUp(result *Result, pods []Pod) (*Result, error) {
	return e.finalResult(result, pods), errLeft
}

// finalResult returns the result and reports it if that has not been done.
func (e *shutdown) finalResult(result *Result, pods []Pod) *Result {
	e.out.abandon()
	if result == nil {
		result = e.result(pods)
		e.o.OnResult(result)
	}
	return result
}

func (e *shutdown) result(pods []Pod) *Result {
	s := rowBuilder{verdict: e.verdict, began: e.began, now: e.verdictAt, last: e.out.lastLines}
	r := newResult(e.verdict, s.rows(pods), len(pods), e.began, e.verdictAt)
	r.Several = e.out.several
	return &r
}

// announce prints the intermediate result if pods must still be stopped.
func (e *shutdown) announce() {
	var going []string
	for i := range e.pods {
		p := &e.pods[i]
		trouble := e.verdict.Failure.Pod != nil && e.verdict.Failure.Pod.Desired == p.Desired
		if p.Report != nil && !p.hasEnded() && !trouble {
			going = append(going, p.Name)
		}
	}
	what := strings.Join(going, ", ")
	if len(going) > 5 {
		what = plural(len(going), "pod")
	}
	switch v := &e.verdict; {
	case v.Outcome == Interrupted && len(going) > 0:
		e.printf("interrupted; ending %s (once more to kill)", what)
	case len(going) > 0 && v.Outcome == Ended:
		e.printf("exit code %d; ending %s", v.Code, what)
	case len(going) > 0 && v.Outcome == Failing:
		e.printf("%s: %s; ending %s", v.Failure.Pod.Name, plain(v.Failure.Why), what)
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
	return plan.Grace(longest)
}
