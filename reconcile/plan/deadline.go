package plan

import "time"

// DeadlineExceeded is the reason of a pod that took longer than its manifest lets
// it.
const DeadlineExceeded = "DeadlineExceeded"

// deadline is when the pod fails by activeDeadlineSeconds, counted from when it
// was admitted, restarts of podd and of containers included; zero: never.
func (f *facts) deadline() time.Time {
	p := f.in.Desired
	if p == nil || p.Spec.Spec.ActiveDeadlineSeconds == nil || f.in.History.StartTime.IsZero() || f.notAdmitted() && f.cur == nil {
		return time.Time{}
	}
	return f.in.History.StartTime.Add(Grace(*p.Spec.Spec.ActiveDeadlineSeconds))
}

// mindDeadline looks again when it has come, while the pod has not ended.
func (f *facts) mindDeadline(d *Decision) {
	if at := f.deadline(); f.in.Now.Before(at) && d.Phase != PhaseWindDown && d.Phase != PhaseRest {
		d.wakeAt(at)
	}
}
