package runonce

import (
	"fmt"
	"net/http"
	"time"

	"podd/cmd/podd/internal/exit"
	"podd/reconcile/plan"
)

// A run fails when one of these limits is reached. The daemon would retry without limit.
const (
	maxFailedPulls        = 3 // failed pulls of one image
	maxFailures           = 5 // failures of any other action for a pod; reached after about 15 s
	maxLongRunningCrashes = 3 // crashes of a container of a long-running pod
	maxCompletionCrashes  = 6 // crashes of a container that restarts until it succeeds
	startTimeout          = 30 * time.Second
	// runtimeTimeout is longer than startTimeout, because a runtime may be restarted while
	// pods run.
	runtimeTimeout = 2 * time.Minute
)

// A podFailure is the reason why a pod cannot succeed.
type podFailure struct {
	Pod       *runPod
	Container string // "" for the whole pod
	// Code is the exit code of the run. If a container crashed in a pod that runs to completion,
	// Code is the exit code of the container. Otherwise it is exit.Internal.
	Code int
	// Exit is the last exit of a container that crashed too often, or nil.
	Exit *plan.Exit
	Why  string
}

// pullReasons are the waiting reasons of image pulls.
var pullReasons = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "RegistryUnavailable": true,
	"SignatureValidationFailed": true, "ErrImageNeverPull": true, "ImageInspectError": true,
}

// A queue describes the pods of a run that wait for reservations of other pods.
type queue struct {
	// proceeds reports whether a pod of the run releases its reservations later.
	proceeds bool
	// lastChange is the time at which a decision about a pod of the run last changed.
	lastChange time.Time
}

// findFailure returns the reason why the pod cannot succeed. If found is false, the pod may still
// succeed, and wake is the result of waitDeadline. A pod that waits for reservations of other pods
// may wait as long as q.proceeds is true.
func (p *runPod) findFailure(now time.Time, q queue) (f podFailure, wake time.Time, found bool) {
	if p.Report == nil || p.hasFinished() {
		return podFailure{}, time.Time{}, false
	}
	d := &p.Report.Decision
	failure := podFailure{Pod: p, Code: exit.Internal, Why: d.Why + attemptsText(d.Failure.Count)}
	if d.Failure.IsFinal || d.Failure.Count >= maxFailures {
		return failure, time.Time{}, true
	}
	for _, s := range d.Steps {
		if isFinalFailure(s.Failure) {
			failure.Container, failure.Why = s.Container, s.Failure.Message+attemptsText(s.Failure.Count)
			return failure, time.Time{}, true
		}
	}
	if t, found := p.findCrashLoop(); found {
		return t, time.Time{}, true
	}
	waitEnd := p.waitDeadline(q)
	if waitEnd.IsZero() || now.Before(waitEnd) {
		return podFailure{}, waitEnd, false
	}
	if failure.Why == "" {
		failure.Why = d.Rule.Sentence()
	}
	failure.Why += "; waited " + p.waitLimit().String()
	return failure, time.Time{}, true
}

// waitDeadline returns the time after which the wait of the pod is a failure. It returns zero if the
// pod is not waiting or may wait without a limit.
func (p *runPod) waitDeadline(q queue) time.Time {
	waitStart := p.Report.DecisionSince
	switch {
	case p.Report.Decision.Phase != plan.PhaseWait || waitStart.IsZero():
		return time.Time{}
	case p.isBlocked() && q.proceeds:
		return time.Time{}
	case p.isBlocked():
		waitStart = q.lastChange // for example, when the last pod that could release reservations released them
	case p.UnblockedAt.After(waitStart): // for example, because the device plugin of the pod is being restarted
		waitStart = p.UnblockedAt
	}
	return waitStart.Add(p.waitLimit())
}

// attemptsText describes n attempts. It returns "" for fewer than two.
func attemptsText(n int) string {
	if n < 2 {
		return ""
	}
	return ", tried " + formatTimes(n)
}

// isFinalFailure reports whether a run must not wait for another attempt after the failure f.
func isFinalFailure(f plan.Failure) bool {
	switch {
	case f.IsFinal:
		return true
	case !pullReasons[f.Reason]:
		return f.Count >= maxFailures
	}
	switch f.HTTPStatus {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return f.Count >= maxFailedPulls
}

// waitLimit returns the time for which the pod may wait for the node: runtimeTimeout if a sandbox
// of the pod was observed, and otherwise startTimeout.
func (p *runPod) waitLimit() time.Duration {
	if len(p.Report.Observed) > 0 {
		return runtimeTimeout
	}
	return startTimeout
}

// findCrashLoop returns the failure of a container that crashes repeatedly. found is false if there
// is none. findCrashLoop ignores sidecars of pods that run to completion. If such a sidecar
// crashes, the regular containers that need it fail themselves.
func (p *runPod) findCrashLoop() (f podFailure, found bool) {
	limit := maxCompletionCrashes
	if p.isLongRunning() {
		limit = maxLongRunningCrashes
	}
	for _, m := range p.containers() {
		n := m.crashCount()
		if !m.willRestart || n < limit || m.kind == plan.KindSidecar && !p.isLongRunning() {
			continue
		}
		t := podFailure{Pod: p, Container: m.spec.Name, Code: exit.Internal, Exit: m.exit}
		t.Why = fmt.Sprintf("crashed %d times", n)
		if !p.isLongRunning() {
			t.Code = poddExitCode(m.exit.Code)
		}
		return t, true
	}
	return podFailure{}, false
}
