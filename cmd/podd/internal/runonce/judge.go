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
	// CompletionPodsStarted is set if an earlier judgement started the pods that run to completion.
	CompletionPodsStarted bool
	// StartTime is the start of the run. Timeout limits its duration; 0 means no limit.
	StartTime, Now time.Time
	Timeout        time.Duration
	Interrupted    bool
	// FatalErr is the error that prevents the run from continuing, because podd cannot write the
	// output or observe the runtime. It is nil if the run can continue.
	FatalErr error
}

// A judgement is the result of judge: the pods to run and, when the run has ended, the verdict.
type judgement struct {
	// DesiredPods contains the pods that should run. It includes the pods of earlier judgements.
	DesiredPods []types.NamespacedName
	// CompletionPodsStarted is set if DesiredPods contains the pods that run to completion.
	CompletionPodsStarted bool
	// Verdict is nil while the run continues.
	Verdict *verdict
	// NextCheck is the time at which judge must be called again even if nothing changes. The zero
	// time means never.
	NextCheck time.Time
}

// An outcome is the reason why a run ended.
type outcome string

const (
	outcomeCompleted   outcome = "ended"       // all pods that run to completion have finished
	outcomeReady       outcome = "ready"       // all pods are ready, and no pod of the run runs to completion
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
	// Failure is the failure of a pod if the outcome is outcomeFailing.
	Failure podFailure
	// Why is the message of judgeInput.FatalErr if the outcome is outcomeBroken.
	Why string
}

// judge decides which pods should run and whether the run has ended. It must not be called again
// after it has returned a verdict.
func judge(in judgeInput) judgement {
	j := judgement{CompletionPodsStarted: in.CompletionPodsStarted || in.areLongRunningPodsReady()}
	for i := range in.Pods {
		if p := &in.Pods[i]; p.isLongRunning() || j.CompletionPodsStarted {
			j.DesiredPods = append(j.DesiredPods, p.Desired.Key)
		}
	}
	j.Verdict = in.decideVerdict(&j)
	return j
}

func (in *judgeInput) areLongRunningPodsReady() bool {
	for i := range in.Pods {
		if p := &in.Pods[i]; p.isLongRunning() && !p.isReady() {
			return false
		}
	}
	return true
}

// decideVerdict returns the verdict, or nil if the run continues. If the verdict may change at a
// certain time, decideVerdict sets j.NextCheck. The cases are tried in order, and the first case
// that applies determines the verdict.
func (in *judgeInput) decideVerdict(j *judgement) *verdict {
	completionPods, unfinished := 0, 0
	for i := range in.Pods {
		if p := &in.Pods[i]; !p.isLongRunning() {
			completionPods++
			if !p.hasFinished() {
				unfinished++
			}
		}
	}
	failure, isFailing := in.firstFailure(j)
	deadline := in.StartTime.Add(in.Timeout)
	switch {
	// A complete result takes precedence over all other events.
	case completionPods > 0 && unfinished == 0:
		return &verdict{Outcome: outcomeCompleted, Code: in.runExitCode(nil)}
	case completionPods == 0 && j.CompletionPodsStarted:
		return &verdict{Outcome: outcomeReady}
	case in.Interrupted:
		return &verdict{Outcome: outcomeInterrupted, Code: exit.Interrupted}
	case in.FatalErr != nil:
		return &verdict{Outcome: outcomeBroken, Code: exit.Internal, Why: in.FatalErr.Error()}
	case isFailing:
		return &verdict{Outcome: outcomeFailing, Code: in.runExitCode(&failure), Failure: failure}
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
	q := in.newQueue(j.CompletionPodsStarted)
	for i := range in.Pods {
		failure, wake, found := in.Pods[i].findFailure(in.Now, q)
		if found {
			return failure, true
		}
		j.wakeAt(wake)
	}
	return podFailure{}, false
}

// newQueue returns the state of the pods that wait for reservations of other pods.
// completionPodsStarted reports whether the pods that run to completion were started.
func (in *judgeInput) newQueue(completionPodsStarted bool) queue {
	q := queue{}
	for i := range in.Pods {
		p := &in.Pods[i]
		q.proceeds = q.proceeds || completionPodsStarted && p.releasesReservations()
		if p.Report != nil && p.Report.DecisionSince.After(q.lastChange) {
			q.lastChange = p.Report.DecisionSince
		}
	}
	return q
}

// runExitCode returns the exit code of the run. firstFailure is the failure that ends the run, or
// nil if all pods have finished. The result is 0 if no container failed, the exit code of the
// failed container, or exitCodeSeveralFailed if several containers failed. A pod that exceeded its
// deadline is treated like one container with the exit code exit.Timeout. If a pod failed and no
// container is the cause, the result is exit.Internal.
func (in *judgeInput) runExitCode(firstFailure *podFailure) int {
	failedContainerCount, c := 0, 0
	for i := range in.Pods {
		p := &in.Pods[i]
		if !p.hasFinished() || p.isLongRunning() || !p.Report.Finished.Failed {
			continue
		}
		reason := p.Report.Finished.Reason
		if reason == plan.ReasonDeadlineExceeded {
			failedContainerCount++
			c = exit.Timeout
			continue
		}
		failedContainers := p.failedContainers()
		// podd kills the containers of an evicted pod after the pod has finished. The exit code
		// must not depend on the number of exits that the runtime has reported by now.
		// failedContainers is empty if a container disappeared before its exit was reported.
		if reason == plan.ReasonEvicted || len(failedContainers) == 0 {
			return exit.Internal
		}
		for _, m := range failedContainers {
			failedContainerCount++
			c = poddExitCode(m.exit.Code)
		}
	}
	if firstFailure != nil {
		failedContainerCount++
		c = firstFailure.Code
		if c == exit.Internal {
			return exit.Internal
		}
	}
	if failedContainerCount > 1 {
		return exitCodeSeveralFailed
	}
	return c
}

// wakeAt sets NextCheck to t if t is earlier than NextCheck. It ignores the zero time.
func (j *judgement) wakeAt(t time.Time) {
	if !t.IsZero() && (j.NextCheck.IsZero() || t.Before(j.NextCheck)) {
		j.NextCheck = t
	}
}
