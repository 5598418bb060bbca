package once

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile"
)

// Pod is one pod of the run and what is known of it. Immutable.
type Pod struct {
	Wanted *manifest.Pod // required
	// Name is what the user calls it.
	Name string
	// Report is the newest while the pod was wanted; nil before the first.
	Report *reconcile.Report
	// ReadyAt is when it was first seen ready; zero: it never was.
	ReadyAt time.Time
}

// See returns p with a newer report. One of a pod that is no longer wanted
// tells nothing about how the pod did, and is left out.
func (p Pod) See(r *reconcile.Report, now time.Time) Pod {
	if r == nil || r.Version == nil {
		return p
	}
	p.Report = r
	if p.ReadyAt.IsZero() && p.ready() {
		p.ReadyAt = now
	}
	return p
}

// goesOn tells the pods that never end by themselves.
func (p *Pod) goesOn() bool {
	return manifest.GoesOn(&p.Wanted.Spec.Spec)
}

// ready says that every container of it is.
func (p *Pod) ready() bool {
	if p.Report == nil || p.Report.Pod == nil {
		return false
	}
	for _, c := range p.Report.Pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// ended says that it ran to its end.
func (p *Pod) ended() bool { return p.Report != nil && p.Report.Finished != nil }
