package once

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

// removal is how long the runtime may take to remove what has ended.
const removal = time.Minute

// ending is the end of a run: everything is removed, and the result told as soon
// as all output was written.
type ending struct {
	*Run
	m       Machine
	verdict Verdict
	known   time.Time     // when the verdict was
	copied  chan struct{} // closed when all output was copied
	hurried bool
	calls   sync.WaitGroup // of the machine
}

var errLeft = errors.New("pods are left; the next podd on this root directory removes them")

func (e *ending) run(ctx context.Context) (*Result, error) {
	pods := slices.Clone(e.pods)
	e.announce()
	ctx, cancel := context.WithCancel(ctx)
	defer e.calls.Wait()
	defer cancel()
	down := make(chan error, 1)
	e.calls.Go(func() { down <- e.m.Down(ctx) })
	if e.verdict.Outcome == TimedOut {
		e.hurry(ctx)
	}
	for i := range e.pods {
		if e.pods[i].Report == nil && !e.started(i) {
			e.out.finish(e.pods[i].Wanted.Key)
		}
	}
	limit := time.NewTimer(e.grace() + removal)
	defer limit.Stop()
	var result *Result
	var failed error
	copied := e.copied
	for result == nil || down != nil {
		select {
		case <-copied:
			copied = nil
			result = e.result(pods)
			e.o.Known(result)
		case failed = <-down:
			down = nil
			for key := range e.out.pods {
				e.out.finish(key)
			}
		case <-e.mail.wake:
			e.take(time.Now())
		case <-e.o.Signals:
			if e.hurried {
				return e.leave(result, pods)
			}
			e.hurry(ctx)
			limit.Reset(removal)
		case <-e.m.Failed():
			failed = errors.Join(e.m.Err(), errLeft)
			return e.give(result, pods), failed
		case <-limit.C:
			return e.leave(result, pods)
		}
	}
	return result, failed
}

// started says that the machine was told of the pod.
func (e *ending) started(i int) bool { return e.released || e.pods[i].goesOn() }

func (e *ending) hurry(ctx context.Context) {
	e.hurried = true
	e.calls.Go(func() {
		// It fails only when the machine does, and that is heard of.
		_ = e.m.Hurry(ctx)
	})
}

// leave gives up on what does not come to its end.
func (e *ending) leave(result *Result, pods []Pod) (*Result, error) {
	return e.give(result, pods), errLeft
}

// give is the result in any case, told if it was not.
func (e *ending) give(result *Result, pods []Pod) *Result {
	e.out.abandon()
	if result == nil {
		result = e.result(pods)
		e.o.Known(result)
	}
	return result
}

func (e *ending) result(pods []Pod) *Result {
	s := scene{verdict: e.verdict, began: e.began, now: e.known, last: e.out.last}
	r := newResult(e.verdict, s.rows(pods), len(pods), e.began, e.known)
	r.Several = e.out.several
	return &r
}

// announce says what is known already when something is still to be ended.
func (e *ending) announce() {
	var going []string
	for i := range e.pods {
		p := &e.pods[i]
		trouble := e.verdict.Trouble.Pod != nil && e.verdict.Trouble.Pod.Wanted == p.Wanted
		if p.Report != nil && !p.ended() && !trouble {
			going = append(going, p.Name)
		}
	}
	what := strings.Join(going, ", ")
	if len(going) > 5 {
		what = plural(len(going), "pod")
	}
	switch v := &e.verdict; {
	case v.Outcome == Interrupted && len(going) > 0:
		e.say("interrupted; ending %s (once more to kill)", what)
	case len(going) > 0 && v.Outcome == Ended:
		e.say("exit code %d; ending %s", v.Code, what)
	case len(going) > 0 && v.Outcome == Hopeless:
		e.say("%s: %s; ending %s", v.Trouble.Pod.Name, plain(v.Trouble.Why), what)
	}
}

// grace is the longest that any of the pods has.
func (e *ending) grace() time.Duration {
	longest := int64(v1.DefaultTerminationGracePeriodSeconds)
	for i := range e.pods {
		if g := e.pods[i].Wanted.Spec.Spec.TerminationGracePeriodSeconds; g != nil {
			longest = max(longest, *g)
		}
	}
	return plan.Grace(longest)
}
