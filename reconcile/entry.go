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

// entry is the router's side of one worker.
type entry struct {
	worker *worker
	cancel context.CancelFunc
	ended  chan struct{}
	order  order  // the last one posted
	shown  uint64 // seq of the first order with an observation; 0: none yet
	past   []journal
	// admitted are versions that may hold what they claim: the wanted one, and
	// earlier ones while something of them runs. A rejected one never does.
	admitted []*manifest.Pod
	holds    []*manifest.Pod // those of which something may run
	report   *Report
	deletes  *plan.Delete
	preempts types.UID // of the pod that was last asked to give way to another
	kind     string    // of the source that wanted it last
	source   string
}

// admit notes that p may hold what it claims.
func (e *entry) admit(p *manifest.Pod) {
	if i := slices.IndexFunc(e.admitted, func(q *manifest.Pod) bool { return sameVersion(p, q) }); i >= 0 {
		e.admitted[i] = p
		return
	}
	e.admitted = append(e.admitted, p)
}

// unasked forgets the asking for the end of a pod that is wanted again: its next end
// is another one.
func (e *entry) unasked(wants *manifest.Pod) {
	del, was := e.deletes, e.order.desired
	if del != nil && wants != nil && wants.UID == del.UID && (was == nil || was.UID != del.UID) {
		e.deletes = nil
	}
}

// ends has a pod that is not wanted end with a grace, or sooner where that was asked
// for before.
func (e *entry) ends(uid types.UID, grace time.Duration, now time.Time) {
	if d := e.deletes; d == nil || d.UID != uid || d.Grace > grace {
		e.deletes = &plan.Delete{UID: uid, Grace: grace, At: now}
	}
}

// claimant is a name with its claims; unwanted says that it is known that nothing
// wants it.
func (e *entry) claimant(key types.NamespacedName, wants *manifest.Pod, last *runtime.Pod, unwanted bool) plan.Claimant {
	c := e.claims(key, wants, last)
	c.Yields = c.Yields || unwanted
	c.Unseen = wants == nil && !unwanted && cmp.Or(e.kind, kindOf(e.observed(last))) == manifest.KindAPI
	return c
}

// claims are what the name claims now. Until the worker has told what it makes
// of its first observation, the observation itself speaks: what runs had its
// claims first.
func (e *entry) claims(key types.NamespacedName, wants *manifest.Pod, last *runtime.Pod) plan.Claimant {
	c := plan.Claimant{Key: key, Wants: wants, Holds: e.holds}
	if e.report != nil {
		c.UIDs, c.Yields = e.report.UIDs, e.report.Decision.Yields
		c.Rests = e.rests() && wants != nil && sameVersion(wants, e.report.Version)
		c.Present = (len(e.admitted) > 0 || e.report.Exists) && !e.rests()
	}
	if p := e.promised(); p != nil && !c.Rests {
		c.Holds, c.Present = append(slices.Clone(c.Holds), p), true
	}
	c.Ends = e.report != nil && e.report.Finished != nil && !e.rests() && wants != nil && sameVersion(wants, e.report.Version)
	c.Rests = c.Rests || wants.Over()
	if e.told() {
		return c
	}
	for _, j := range e.past {
		c.UIDs = append(slices.Clone(c.UIDs), j.UID)
		c.Rests = c.Rests || wants != nil && j.Finished.Of(wants)
	}
	if last == nil {
		return c
	}
	if held := e.found(wants, last.Incarnations); held != nil && !c.Rests {
		c.Holds = append(slices.Clone(c.Holds), held)
	}
	for i := range last.Incarnations {
		if inc := &last.Incarnations[i]; !inc.Foreign {
			c.UIDs = append(slices.Clone(c.UIDs), inc.UID)
			c.Present = !c.Rests
		}
	}
	c.Holds = append(slices.Clone(c.Holds), strangers(last.Incarnations, c.Holds)...)
	return c
}

// promised is what the worker may begin by its last order, before any report tells
// of that; nil for nothing.
func (e *entry) promised() *manifest.Pod {
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

// told says whether the worker has spoken of its first observation.
func (e *entry) told() bool { return e.report != nil && e.shown > 0 && e.report.seq >= e.shown }

// found is the wanted version in the sizes that what is there of it has; nil when
// nothing is.
func (e *entry) found(wants *manifest.Pod, observed []runtime.Incarnation) *manifest.Pod {
	if !slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool { return plan.Runs(wants, &inc) }) {
		return nil
	}
	given := map[string]string{}
	for _, j := range e.past {
		maps.Copy(given, j.Sizes)
	}
	return wants.Sized(plan.Sizes(wants, observed, given, false))
}

// rests says that the pod ran to its end and holds nothing but its records.
func (e *entry) rests() bool {
	return e.report.Finished != nil && e.report.Version != nil && e.report.Decision.Phase == plan.PhaseRest
}

// updateHolds keeps what the last report shows to be in force or to run, and
// tells whether claims changed since the one before.
func (e *entry) updateHolds(before *Report) (changed bool) {
	var holds, admitted []*manifest.Pod
	for _, p := range e.admitted {
		inForce := e.report.Version != nil && sameVersion(p, e.report.Version)
		holding := inForce && e.report.Exists && !e.rests() || listed(e.report.Observed, p)
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
	// One that is not admitted in the size it is written may run in another.
	if v := e.report.Version; v != nil && listed(e.report.Observed, v) && !slices.ContainsFunc(e.admitted, func(p *manifest.Pod) bool { return sameVersion(p, v) }) {
		holds = append(holds, e.report.Held...)
	}
	holds = append(holds, strangers(e.report.Observed, append(slices.Clone(e.admitted), e.report.Version))...)
	changed = !slices.EqualFunc(holds, e.holds, sameSize) || len(admitted) != len(e.admitted) || before == nil ||
		(before.Finished == nil) != (e.report.Finished == nil) || !slices.Equal(before.UIDs, e.report.UIDs) || before.Decision.Yields != e.report.Decision.Yields
	e.holds, e.admitted = holds, admitted
	return changed
}

func sameSize(a, b *manifest.Pod) bool {
	return sameVersion(a, b) && maps.Equal(a.Containers, b.Containers)
}

// listed tells whether anything of a version runs.
func listed(observed []runtime.Incarnation, p *manifest.Pod) bool {
	return slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool { return plan.Runs(p, &inc) && plan.Live(&inc) })
}

// strangers are versions that run and are none of the known ones: podd has no
// manifest of them since it was started anew. What they claim is on their
// containers.
func strangers(observed []runtime.Incarnation, known []*manifest.Pod) []*manifest.Pod {
	var all []*manifest.Pod
	for i := range observed {
		inc := &observed[i]
		if inc.Foreign || !plan.Live(inc) || slices.ContainsFunc(known, func(p *manifest.Pod) bool { return p != nil && plan.Runs(p, inc) }) {
			continue
		}
		all = append(all, stranger(inc))
	}
	return all
}

// stranger is as much of a version's manifest as its sandbox and containers tell.
func stranger(inc *runtime.Incarnation) *manifest.Pod {
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
		// What does not decode was not written by podd and claims nothing.
		if json.Unmarshal([]byte(inc.Containers[i].Annotations[runtime.AnnotationContainerPorts]), &c.Ports) == nil {
			p.Spec.Spec.Containers = append(p.Spec.Spec.Containers, c)
		}
	}
	return p
}
