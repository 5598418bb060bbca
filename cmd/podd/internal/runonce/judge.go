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
	// Released is set if an earlier judgement started the pods that end by themselves.
	Released bool
	// Began is the start of the run. Timeout limits its duration; 0 means no limit.
	Began, Now  time.Time
	Timeout     time.Duration
	Interrupted bool
	// Broken is the error that prevents the run from continuing: podd cannot write the
	// output or observe the runtime. It is nil if there is none.
	Broken error
}

// A judgement is the result of judge: the pods to run and, at the end, the verdict.
type judgement struct {
	// Start contains the pods that should run. It includes the pods of earlier judgements.
	Start []types.NamespacedName
	// Released is set if Start contains the pods that end by themselves.
	Released bool
	// Verdict is nil while the run continues.
	Verdict *verdict
	// Wake is when to call judge again if nothing changes before; zero means never.
	Wake time.Time
}

// An outcome is the reason for which a run ended.
type outcome string

// The outcomes.
const (
	outcomeEnded       outcome = "ended"       // all pods that end by themselves have ended
	outcomeReady       outcome = "ready"       // no pod ends by itself, and all pods are ready
	outcomeFailing     outcome = "hopeless"    // a pod cannot succeed
	outcomeTimedOut    outcome = "timeout"     // the timeout has passed
	outcomeInterrupted outcome = "interrupted" // the user has stopped the run
	outcomeBroken      outcome = "broken"      // podd cannot continue
)

// A verdict describes the end of a run.
type verdict struct {
	Outcome outcome
	// Code is the exit code.
	Code int
	// Failure is set if the outcome is outcomeFailing.
	Failure podFailure
	// Why is set if the outcome is outcomeBroken.
	Why string
}

// judge decides which pods should run and whether the run has ended. It is pure. It must
// not be called again after it has returned a verdict.
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

// verdict returns the verdict, or nil if the run continues. It is an ordered table, in
// which the first match wins.
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

// firstFailure returns the failure of the first pod that cannot succeed. found is false if
// there is no such pod.
func (in *judgeInput) firstFailure(j *judgement) (f podFailure, found bool) {
	for i := range in.Pods {
		t, wake, found := in.Pods[i].failure(in.Now)
		if found {
			return t, true
		}
		j.wakeAt(wake)
	}
	return podFailure{}, false
}

// code returns the exit code of the run for its first failure t. It is the exit code of the
// failed container, or codeSeveral if several containers failed. A failure without a
// container takes precedence.
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
		// The containers of an evicted pod exit after the pod has ended, because podd kills
		// them. The code must not depend on how many of these exits are reported.
		culprits := p.failedContainers()
		if reason == plan.Evicted || len(culprits) == 0 { // or the container disappeared before it exited
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

// wakeAt sets Wake to t if t is earlier.
func (j *judgement) wakeAt(t time.Time) {
	if !t.IsZero() && (j.Wake.IsZero() || t.Before(j.Wake)) {
		j.Wake = t
	}
}
