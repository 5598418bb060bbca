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

// removeTimeout limits the time for removing pods that have stopped.
const removeTimeout = time.Minute

// A shutdown stops and removes the pods of a run, and reports the result when all output is
// written.
type shutdown struct {
	*runDriver
	m         runner
	verdict   verdict
	verdictAt time.Time     // time of the verdict
	copied    chan struct{} // closed when all output is copied
	isForced  bool
	calls     sync.WaitGroup // calls of the runner
}

// errPodsRemain is the error of a run that ends before its pods are removed.
var errPodsRemain = errors.New("some pods were not removed; the next podd with this root directory removes them")

// run stops and removes the pods and returns the result. It returns an error if pods could not be
// removed.
func (e *shutdown) run(ctx context.Context) (*runResult, error) {
	pods := slices.Clone(e.pods)
	e.announceStop()
	ctx, cancel := context.WithCancel(ctx)
	defer e.calls.Wait()
	defer cancel()
	downResult := make(chan error, 1)
	e.calls.Go(func() { downResult <- e.m.Down(ctx) })
	if e.verdict.Outcome == outcomeTimedOut {
		e.forceStop(ctx)
	}
	for i := range e.pods {
		if e.pods[i].Report == nil && !e.isStarted(i) {
			e.out.finish(e.pods[i].Desired.Key)
		}
	}
	limit := time.NewTimer(e.longestGracePeriod() + removeTimeout)
	defer limit.Stop()
	var result *runResult
	var runErr error
	copied := e.copied
	for result == nil || downResult != nil {
		select {
		case <-copied:
			copied = nil
			result = e.newRunResult(pods)
			e.o.OnResult(result)
		case runErr = <-downResult:
			downResult = nil
			for key := range e.out.pods {
				e.out.finish(key)
			}
		case <-e.changes.wake:
			e.applyChanges(time.Now())
		case <-e.o.Signals:
			if e.isForced {
				return e.abandonPods(result, pods)
			}
			e.forceStop(ctx)
			limit.Reset(removeTimeout)
		case <-e.m.Failed():
			runErr = errors.Join(e.m.Err(), errPodsRemain)
			return e.finalResult(result, pods), runErr
		case <-limit.C:
			return e.abandonPods(result, pods)
		}
	}
	return result, runErr
}

// isStarted reports whether the pod at index i was passed to the runner.
func (e *shutdown) isStarted(i int) bool { return e.completionPodsStarted || e.pods[i].isLongRunning() }

// forceStop calls ForceStop of the runner in a goroutine and does not wait for the result.
func (e *shutdown) forceStop(ctx context.Context) {
	e.isForced = true
	e.calls.Go(func() {
		// ForceStop fails only if the runner fails, and run handles the failure of the runner.
		_ = e.m.ForceStop(ctx)
	})
}

// abandonPods returns the final result and errPodsRemain.
func (e *shutdown) abandonPods(result *runResult, pods []runPod) (*runResult, error) {
	return e.finalResult(result, pods), errPodsRemain
}

// finalResult returns result. If result is nil, finalResult creates the result and calls
// OnResult.
func (e *shutdown) finalResult(result *runResult, pods []runPod) *runResult {
	e.out.abandon()
	if result == nil {
		result = e.newRunResult(pods)
		e.o.OnResult(result)
	}
	return result
}

// newRunResult returns the result of the run. pods are the pods at the time of the verdict.
func (e *shutdown) newRunResult(pods []runPod) *runResult {
	v := e.verdict
	v.Why = withoutSuffix(v.Why, e.pods[0].Desired.NameSuffix)
	s := rowBuilder{verdict: v, startTime: e.startTime, now: e.verdictAt, lastLines: e.out.lastLines}
	r := newResult(v, s.rows(pods), len(pods), e.out.hasSeveralContainers, e.startTime, e.verdictAt)
	return &r
}

// announceStop prints the reason why the run stops its pods. It prints nothing if no pod was
// admitted and still runs.
func (e *shutdown) announceStop() {
	var podNames []string
	for i := range e.pods {
		p := &e.pods[i]
		isFailing := e.verdict.Failure.Pod != nil && e.verdict.Failure.Pod.Desired == p.Desired
		if p.Report != nil && !p.hasFinished() && !p.isBlocked() && !isFailing {
			podNames = append(podNames, p.Name)
		}
	}
	if len(podNames) == 0 {
		return
	}
	names := strings.Join(podNames, ", ")
	if len(podNames) > 5 {
		names = printer.FormatCount(len(podNames), "pod")
	}
	switch v := &e.verdict; v.Outcome {
	case outcomeInterrupted:
		e.printf("interrupted; stopping %s (interrupt again to kill the containers)", names)
	case outcomeCompleted:
		e.printf("exit code %d; stopping %s", v.Code, names)
	case outcomeFailing:
		e.printf("%s: %s; stopping %s", v.Failure.Pod.Name, withoutControlChars(v.Failure.Why), names)
	}
}

func (e *shutdown) longestGracePeriod() time.Duration {
	longest := int64(v1.DefaultTerminationGracePeriodSeconds)
	for i := range e.pods {
		if g := e.pods[i].Desired.Object.Spec.TerminationGracePeriodSeconds; g != nil {
			longest = max(longest, *g)
		}
	}
	return plan.GraceDuration(longest)
}
