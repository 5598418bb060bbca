package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// entry is the router's record of one worker.
type entry struct {
	worker      *worker
	cancel      context.CancelFunc
	ended       chan struct{}
	order       order        // the last one posted
	firstSeq    uint64       // seq of the first order with an observation; 0 if there is none yet
	observation *runtime.Pod // the newest observation posted to the worker
	past        []journal
	// admitted are versions that may hold reservations: the desired one, and earlier ones
	// while something of them runs. A rejected version holds none.
	admitted  []*manifest.Pod
	holds     []*manifest.Pod // versions that may have running containers
	report    *Report
	deletion  *plan.Delete
	preempted types.UID // UID of the pod that was last told to give way to another
	kind      string    // kind of the source that had it last
	source    string
}

// hasObservation reports whether p is the newest observation of the worker. The observer
// keeps the pointer of a pod that did not change.
func (e *entry) hasObservation(p *runtime.Pod) bool { return e.firstSeq > 0 && e.observation == p }

// addAdmitted records that p may hold reservations.
func (e *entry) addAdmitted(p *manifest.Pod) {
	if i := slices.IndexFunc(e.admitted, func(q *manifest.Pod) bool { return sameVersion(p, q) }); i >= 0 {
		e.admitted[i] = p
		return
	}
	e.admitted = append(e.admitted, p)
}

// clearDeletion forgets the deletion of a pod that is desired again. Its next deletion is a
// new one.
func (e *entry) clearDeletion(wants *manifest.Pod) {
	del, was := e.deletion, e.order.desired
	if del != nil && wants != nil && wants.UID == del.UID && (was == nil || was.UID != del.UID) {
		e.deletion = nil
	}
}

// setDeletion deletes a pod with a grace, unless a shorter one was requested before.
func (e *entry) setDeletion(uid types.UID, grace time.Duration, now time.Time) {
	if d := e.deletion; d == nil || d.UID != uid || d.Grace > grace {
		e.deletion = &plan.Delete{UID: uid, Grace: grace, At: now}
	}
}

// claimant returns a name with its reservations; unwanted reports whether it is known that
// no source has the pod.
func (e *entry) claimant(key types.NamespacedName, wants *manifest.Pod, last *runtime.Pod, unwanted bool) plan.Claimant {
	c := e.reservations(key, wants, last)
	c.Yields = c.Yields || unwanted
	c.Unconfirmed = wants == nil && !unwanted && cmp.Or(e.kind, kindOf(e.observed(last))) == manifest.KindAPI
	return c
}

// reservations returns the present reservations of a name. Until the worker has reported on
// its first observation, they are computed from the observation, because running pods had
// their reservations first.
func (e *entry) reservations(key types.NamespacedName, wants *manifest.Pod, last *runtime.Pod) plan.Claimant {
	c := plan.Claimant{Key: key, Wants: wants, Holds: e.holds}
	if e.report != nil {
		c.UIDs, c.Yields = e.report.UIDs, e.report.Decision.Yields
		c.Rests = e.isFinished() && wants != nil && sameVersion(wants, e.report.Version)
		c.Present = (len(e.admitted) > 0 || e.report.Exists) && !e.isFinished()
	}
	if p := e.startable(); p != nil && !c.Rests {
		c.Holds, c.Present = append(slices.Clone(c.Holds), p), true
	}
	c.Ends = e.report != nil && e.report.Finished != nil && !e.isFinished() && wants != nil && sameVersion(wants, e.report.Version)
	c.Rests = c.Rests || wants.Over()
	if e.hasReported() {
		return c
	}
	for _, j := range e.past {
		c.UIDs = append(slices.Clone(c.UIDs), j.UID)
		c.Rests = c.Rests || wants != nil && j.Finished.AppliesTo(wants)
	}
	if last == nil {
		return c
	}
	if held := e.runningVersion(wants, last.Incarnations); held != nil && !c.Rests {
		c.Holds = append(slices.Clone(c.Holds), held)
	}
	for i := range last.Incarnations {
		if inc := &last.Incarnations[i]; !inc.Foreign {
			c.UIDs = append(slices.Clone(c.UIDs), inc.UID)
			c.Present = !c.Rests
		}
	}
	c.Holds = append(slices.Clone(c.Holds), unknownVersions(last.Incarnations, c.Holds)...)
	return c
}

// startable returns the version that the worker may start because of its last order, before
// it reports that; nil if there is none.
func (e *entry) startable() *manifest.Pod {
	p := e.order.desired
	same := func(q *manifest.Pod) bool { return q != nil && sameVersion(p, q) }
	switch {
	case p == nil, e.order.verdict.Answer != plan.Admit, !slices.ContainsFunc(e.admitted, same):
		return nil
	case e.report != nil && e.report.Finished != nil && same(e.report.Version):
		return nil
	}
	return p
}

// hasReported reports whether the worker has reported on its first observation.
func (e *entry) hasReported() bool {
	return e.report != nil && e.firstSeq > 0 && e.report.seq >= e.firstSeq
}

// runningVersion returns the desired version in the size of its running containers; nil if
// none runs.
func (e *entry) runningVersion(wants *manifest.Pod, observed []runtime.Incarnation) *manifest.Pod {
	if !slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool { return plan.Runs(wants, &inc) }) {
		return nil
	}
	given := map[string]plan.Size{}
	for _, j := range e.past {
		maps.Copy(given, j.Sizes)
	}
	return wants.Sized(plan.Sizes(wants, observed, given, false))
}

// isFinished reports whether the pod has terminated and nothing but its records is left.
func (e *entry) isFinished() bool {
	return e.report.Finished != nil && e.report.Version != nil && e.report.Decision.Phase == plan.PhaseRest
}

// updateHolds sets the versions that hold reservations from the last report. It reports
// whether reservations changed since the report before.
func (e *entry) updateHolds(before *Report) (changed bool) {
	var holds, admitted []*manifest.Pod
	for _, p := range e.admitted {
		inForce := e.report.Version != nil && sameVersion(p, e.report.Version)
		holding := inForce && e.report.Exists && !e.isFinished() || isRunning(e.report.Observed, p)
		switch {
		case holding && inForce:
			holds = append(holds, e.report.Held...)
		case holding:
			holds = append(holds, p)
		}
		if holding || inForce || e.order.desired != nil && sameVersion(p, e.order.desired) {
			admitted = append(admitted, p)
		}
	}
	// A version that is not admitted in its desired size may run in another one.
	if v := e.report.Version; v != nil && isRunning(e.report.Observed, v) && !slices.ContainsFunc(e.admitted, func(p *manifest.Pod) bool { return sameVersion(p, v) }) {
		holds = append(holds, e.report.Held...)
	}
	holds = append(holds, unknownVersions(e.report.Observed, append(slices.Clone(e.admitted), e.report.Version))...)
	changed = !slices.EqualFunc(holds, e.holds, sameSize) || len(admitted) != len(e.admitted) || before == nil ||
		(before.Finished == nil) != (e.report.Finished == nil) || !slices.Equal(before.UIDs, e.report.UIDs) || before.Decision.Yields != e.report.Decision.Yields
	e.holds, e.admitted = holds, admitted
	return changed
}

// sameSize reports whether a and b are the same version with the same container sizes.
func sameSize(a, b *manifest.Pod) bool {
	return sameVersion(a, b) && maps.Equal(a.Containers, b.Containers)
}

// isRunning reports whether anything of a version runs.
func isRunning(observed []runtime.Incarnation, p *manifest.Pod) bool {
	return slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool { return plan.Runs(p, &inc) && plan.Live(&inc) })
}

// awaitsExit reports whether an exit code of a version is not known yet.
func awaitsExit(observed []runtime.Incarnation, p *manifest.Pod) bool {
	return slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool {
		return plan.Runs(p, &inc) && lacksExitCode(&inc)
	})
}

// lacksExitCode reports whether the exit code of a container in a sandbox is not known yet.
func lacksExitCode(inc *runtime.Incarnation) bool {
	return slices.ContainsFunc(inc.Containers, func(c runtime.Container) bool { return c.State == runtime.ExitUnknown })
}

// unknownVersions returns the versions that run and are not in known: podd has had no
// manifest of them since it was started. Their reservations are recorded on their
// containers.
func unknownVersions(observed []runtime.Incarnation, known []*manifest.Pod) []*manifest.Pod {
	var all []*manifest.Pod
	for i := range observed {
		inc := &observed[i]
		if inc.Foreign || !plan.Live(inc) || slices.ContainsFunc(known, func(p *manifest.Pod) bool { return p != nil && plan.Runs(p, inc) }) {
			continue
		}
		all = append(all, unknownVersion(inc))
	}
	return all
}

// unknownVersion returns the part of a version's manifest that its sandbox and containers
// record.
func unknownVersion(inc *runtime.Incarnation) *manifest.Pod {
	p := &manifest.Pod{UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationHash], Spec: &v1.Pod{}}
	p.Origin.Path = "an earlier version"
	size := manifest.OfSize(inc.Annotations[runtime.AnnotationSize])
	p.Spec.Spec.Resources = &size
	if devices := devicesOf(inc); len(devices) > 0 {
		c := v1.Container{Resources: v1.ResourceRequirements{Requests: devices}}
		p.Spec.Spec.Containers = append(p.Spec.Spec.Containers, c)
	}
	for i := range inc.Containers {
		c := v1.Container{Name: inc.Containers[i].Name}
		// An annotation that cannot be decoded is not podd's and reserves nothing.
		if json.Unmarshal([]byte(inc.Containers[i].Annotations[runtime.AnnotationContainerPorts]), &c.Ports) == nil {
			p.Spec.Spec.Containers = append(p.Spec.Spec.Containers, c)
		}
	}
	return p
}
