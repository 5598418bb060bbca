package runonce

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/exit"
	"podd/reconcile/plan"
)

// judgeInput contains the inputs of judge.
type judgeInput struct {
	Pods []runPod // at least one
	// Released is set if an earlier judgement started the pods that end.
	Released bool
	// Began is the start of the run. Timeout limits it; zero is no limit.
	Began, Now  time.Time
	Timeout     time.Duration
	Interrupted bool
	// Broken is the error if the output cannot be written or the runtime cannot be
	// observed; nil otherwise.
	Broken error
}

// A judgement contains the next actions.
type judgement struct {
	// Start contains the pods that should run, including those that were started before.
	Start []types.NamespacedName
	// Released is set if Start contains the pods that end.
	Released bool
	// Verdict is not nil if the run ends.
	Verdict *verdict
	// Wake is the time of the next call of judge if nothing happens; may be zero.
	Wake time.Time
}

// outcome is the reason why a run ended.
type outcome string

// The outcomes.
const (
	outcomeEnded       outcome = "ended"       // every pod that ends has ended
	outcomeReady       outcome = "ready"       // there are no pods that end, and all others are ready
	outcomeFailing     outcome = "hopeless"    // a pod cannot succeed
	outcomeTimedOut    outcome = "timeout"     // the timeout has passed
	outcomeInterrupted outcome = "interrupted" // the user has stopped it
	outcomeBroken      outcome = "broken"      // podd cannot continue
)

// A verdict is the result of judge.
type verdict struct {
	Outcome outcome
	// Code is the exit code.
	Code int
	// Failure is set if the outcome is outcomeFailing.
	Failure podFailure
	// Why is set if the outcome is outcomeBroken.
	Why string
}

// judge decides what to do next. It is pure: equal inputs give equal results. It must not
// be called again after it returned a verdict.
func judge(in judgeInput) judgement {
	j := judgement{Released: in.Released || in.longRunningReady()}
	for i := range in.Pods {
		if p := &in.Pods[i]; p.isLongRunning() || j.Released {
			j.Start = append(j.Start, p.Desired.Key)
		}
	}
	j.Verdict = in.verdict(&j)
	return j
}

// longRunningReady reports whether every long-running pod is ready.
func (in *judgeInput) longRunningReady() bool {
	for i := range in.Pods {
		if p := &in.Pods[i]; p.isLongRunning() && !p.isReady() {
			return false
		}
	}
	return true
}

// verdict returns the verdict, or nil if the run continues. It is an ordered table; the
// first match decides.
func (in *judgeInput) verdict(j *judgement) *verdict {
	ending, unfinished := 0, 0
	for i := range in.Pods {
		if p := &in.Pods[i]; !p.isLongRunning() {
			ending++
			if !p.hasEnded() {
				unfinished++
			}
		}
	}
	failure, isFailing := in.firstFailure(j)
	deadline := in.Began.Add(in.Timeout)
	switch {
	// A complete result takes precedence over all other events.
	case ending > 0 && unfinished == 0:
		return &verdict{Outcome: outcomeEnded, Code: in.code(nil)}
	case ending == 0 && j.Released:
		return &verdict{Outcome: outcomeReady}
	case in.Interrupted:
		return &verdict{Outcome: outcomeInterrupted, Code: exit.Interrupted}
	case in.Broken != nil:
		return &verdict{Outcome: outcomeBroken, Code: exit.Internal, Why: in.Broken.Error()}
	case isFailing:
		return &verdict{Outcome: outcomeFailing, Code: in.code(&failure), Failure: failure}
	case in.Timeout > 0 && !in.Now.Before(deadline):
		return &verdict{Outcome: outcomeTimedOut, Code: exit.Timeout}
	case in.Timeout > 0:
		j.wakeAt(deadline)
	}
	return nil
}

// firstFailure returns the failure of the first pod that cannot succeed.
func (in *judgeInput) firstFailure(j *judgement) (podFailure, bool) {
	for i := range in.Pods {
		t, wake, found := in.Pods[i].failure(in.Now)
		if found {
			return t, true
		}
		j.wakeAt(wake)
	}
	return podFailure{}, false
}

// code returns the exit code of the only container that failed, or codeSeveral. A failure
// without a container takes precedence.
func (in *judgeInput) code(t *podFailure) int {
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
		// An evicted pod has ended before its containers, which podd kills. The code must
		// not depend on whether their exits are known yet.
		culprits := p.failedContainers()
		if reason == plan.Evicted || len(culprits) == 0 { // or it disappeared before it ended
			return exit.Internal
		}
		for _, m := range culprits {
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
		return codeSeveral
	}
	return c
}

// wakeAt sets Wake to the earliest time.
func (j *judgement) wakeAt(t time.Time) {
	if !t.IsZero() && (j.Wake.IsZero() || t.Before(j.Wake)) {
		j.Wake = t
	}
}
