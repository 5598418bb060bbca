package runonce

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/condition"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// A runPod is a pod of the run, and its state. It is immutable.
type runPod struct {
	Desired *manifest.Pod // must not be nil
	// Name is the name of the pod in messages.
	Name string
	// Report is the newest report that contains a desired version, or nil if there was
	// none.
	Report *state.Report
	// ReadyAt is the time at which the pod was first observed ready, or zero.
	ReadyAt time.Time
	// UnblockedAt is the time at which the pod last stopped waiting for reservations of other pods, or
	// zero.
	UnblockedAt time.Time
}

// withReport returns p with the newer report r. It returns p unchanged if r contains no
// desired version, because such a report does not describe the result of the pod.
func (p runPod) withReport(r *state.Report, now time.Time) runPod {
	if r == nil || r.Version == nil {
		return p
	}
	wasBlocked := p.isBlocked()
	p.Report = r
	if wasBlocked && !p.isBlocked() {
		p.UnblockedAt = now
	}
	if p.ReadyAt.IsZero() && p.isReady() {
		p.ReadyAt = now
	}
	return p
}

// isLongRunning reports whether the pod does not run to completion, because its restartPolicy is
// Always.
func (p *runPod) isLongRunning() bool {
	return manifest.RunsForever(&p.Desired.Object.Spec)
}

func (p *runPod) isReady() bool {
	return p.Report != nil && p.Report.Pod != nil && condition.IsTrue(p.Report.Pod.Status.Conditions, v1.PodReady)
}

// isBlocked reports whether the pod waits for reservations of other pods.
func (p *runPod) isBlocked() bool {
	return p.Report != nil && p.Report.Decision.BlockedByPods && !p.hasFinished()
}

// releasesReservations reports whether the pod, which must have been started, runs to completion and
// has not released its reservations yet.
func (p *runPod) releasesReservations() bool {
	switch {
	case p.isLongRunning() || p.isBlocked():
		return false
	case p.Report == nil:
		return true // there is no decision about the pod yet
	}
	return !p.hasFinished() || p.Report.Decision.Phase != plan.PhaseCleanedUp
}

// hasFinished reports whether the pod has succeeded or failed and will not run again.
func (p *runPod) hasFinished() bool { return p.Report != nil && p.Report.Finished != nil }
