package runonce

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/exit"
	"podd/reconcile/plan"
)

// Input contains the inputs of Judge.
type Input struct {
	Pods []Pod // at least one
	// Released is set if an earlier Judgement started the pods that end.
	Released bool
	// Began is the start of the run. Timeout limits it; zero is no limit.
	Began, Now  time.Time
	Timeout     time.Duration
	Interrupted bool
	// Broken is the error if the output cannot be written or the runtime cannot be observed;
	// nil otherwise.
	Broken error
}

// A Judgement contains the next actions.
type Judgement struct {
	// Start contains the pods that should run, including those that were started before.
	Start []types.NamespacedName
	// Released is set if Start contains the pods that end.
	Released bool
	// Verdict is not nil if the run ends.
	Verdict *Verdict
	// Wake is the time of the next call of Judge if nothing happens; may be zero.
	Wake time.Time
}

// Outcome is the reason for which a run ended.
type Outcome string

// The outcomes.
const (
	Ended       Outcome = "ended"       // every pod that ends has ended
	Ready       Outcome = "ready"       // there are no pods that end, and all others are ready
	Failing     Outcome = "hopeless"    // a pod cannot succeed
	TimedOut    Outcome = "timeout"     // the timeout has passed
	Interrupted Outcome = "interrupted" // the user has stopped it
	Broken      Outcome = "broken"      // podd cannot continue
)

// A Verdict is the result of Judge.
type Verdict struct {
	Outcome Outcome
	// Code is the exit code.
	Code int
	// Failure is set if the outcome is Failing.
	Failure PodFailure
	// Why is set if the outcome is Broken.
	Why string
}

// Judge decides what to do next. It is pure: equal inputs give equal results. It must not
// be called again after it returned a Verdict.
func Judge(in Input) Judgement {
	j := Judgement{Released: in.Released || in.longRunningReady()}
	for i := range in.Pods {
		if p := &in.Pods[i]; p.isLongRunning() || j.Released {
			j.Start = append(j.Start, p.Desired.Key)
		}
	}
	j.Verdict = in.verdict(&j)
	return j
}

// longRunningReady reports whether every long-running pod is ready.
func (in *Input) longRunningReady() bool {
	for i := range in.Pods {
		if p := &in.Pods[i]; p.isLongRunning() && !p.isReady() {
			return false
		}
	}
	return true
}

// verdict is an ordered table; the first match decides.
func (in *Input) verdict(j *Judgement) *Verdict {
	ending, left := 0, 0
	for i := range in.Pods {
		if p := &in.Pods[i]; !p.isLongRunning() {
			ending++
			if !p.hasEnded() {
				left++
			}
		}
	}
	trouble, hopeless := in.firstFailure(j)
	deadline := in.Began.Add(in.Timeout)
	switch {
	// A complete result takes precedence over all other events.
	case ending > 0 && left == 0:
		return &Verdict{Outcome: Ended, Code: in.code(nil)}
	case ending == 0 && j.Released:
		return &Verdict{Outcome: Ready}
	case in.Interrupted:
		return &Verdict{Outcome: Interrupted, Code: exit.Interrupted}
	case in.Broken != nil:
		return &Verdict{Outcome: Broken, Code: exit.Internal, Why: in.Broken.Error()}
	case hopeless:
		return &Verdict{Outcome: Failing, Code: in.code(&trouble), Failure: trouble}
	case in.Timeout > 0 && !in.Now.Before(deadline):
		return &Verdict{Outcome: TimedOut, Code: exit.Timeout}
	case in.Timeout > 0:
		j.wakeAt(deadline)
	}
	return nil
}

// firstFailure returns the failure of the first pod that cannot succeed.
func (in *Input) firstFailure(j *Judgement) (PodFailure, bool) {
	for i := range in.Pods {
		t, wake, found := in.Pods[i].failure(in.Now)
		if found {
			return t, true
		}
		j.wakeAt(wake)
	}
	return PodFailure{}, false
}

// code returns the exit code of the only container that failed, or CodeSeveral. A failure
// without a container takes precedence.
func (in *Input) code(t *PodFailure) int {
	failed, c := 0, 0
	for i := range in.Pods {
		p := &in.Pods[i]
		if !p.hasEnded() || p.isLongRunning() || !p.Report.Finished.Failed {
			continue
		}
		reason := p.Report.Finished.Reason
		if reason == plan.DeadlineExceeded {
			failed++
			c = exit.Timeout
			continue
		}
		// An evicted pod has ended before its containers, which podd kills. The code must not
		// depend on whether their exits are known yet.
		blamed := p.failedContainers()
		if reason == plan.Evicted || len(blamed) == 0 { // or it disappeared before it ended
			return exit.Internal
		}
		for _, m := range blamed {
			failed++
			c = exitCode(m.exit.Code)
		}
	}
	if t != nil {
		failed++
		c = t.Code
		if c == exit.Internal {
			return exit.Internal
		}
	}
	if failed > 1 {
		return CodeSeveral
	}
	return c
}

// wakeAt sets Wake to the earliest time.
func (j *Judgement) wakeAt(t time.Time) {
	if !t.IsZero() && (j.Wake.IsZero() || t.Before(j.Wake)) {
		j.Wake = t
	}
}
