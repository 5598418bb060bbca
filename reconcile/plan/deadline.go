package plan

import "time"

// ReasonDeadlineExceeded is the reason of a pod that exceeded its activeDeadlineSeconds.
const ReasonDeadlineExceeded = "DeadlineExceeded"

// deadline returns the time at which the pod fails because of activeDeadlineSeconds; zero means
// never. The time is counted from the admission of the pod. Restarts of podd and of containers do
// not extend it. If podd is killed before it has recorded the failure, the pod fails again, because
// its start time was recorded before the pod was started.
func (f *facts) deadline() time.Time {
	p := f.in.Desired
	if p == nil || p.Object.Spec.ActiveDeadlineSeconds == nil || f.in.History.StartTime.IsZero() || f.isNotAdmitted() && f.current == nil {
		return time.Time{}
	}
	return f.in.History.StartTime.Add(GraceDuration(*p.Object.Spec.ActiveDeadlineSeconds))
}

// isPastDeadline reports whether the deadline has passed.
func (f *facts) isPastDeadline() bool {
	at := f.deadline()
	return !at.IsZero() && !f.in.Now.Before(at)
}

// hasDeadlineAhead reports whether the pod has not finished and its deadline has not passed.
func (f *facts) hasDeadlineAhead(d *Decision) bool {
	return !d.UseSuccessor && f.in.Now.Before(f.deadline()) && d.Phase != PhaseWindDown && d.Phase != PhaseCleanedUp
}
