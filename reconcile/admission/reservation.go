package admission

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/manifest"
	"podd/reconcile/device/allocation"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// candidate returns a name with its reservations; unwanted reports whether it is known that
// no source has the pod.
func (n *Name) candidate(wants *manifest.Pod, unwanted bool) candidate {
	c := n.reservations(wants)
	c.Releasing = c.Releasing || unwanted
	c.Unconfirmed = wants == nil && !unwanted && manifest.KindTraits(cmp.Or(n.kind, kindOf(n.observed()))).DeletedAtSource
	return c
}

// reservations returns the present reservations of a name. Until the worker has reported on
// its first observation, they are computed from the observation, because running pods had
// their reservations first.
func (n *Name) reservations(wants *manifest.Pod) candidate {
	last := n.Observed
	c := candidate{Key: n.Key, Desired: wants, Held: n.Held}
	if n.Report != nil {
		c.UIDs, c.Releasing = n.Report.UIDs, n.Report.Decision.Releasing
		c.Finished = n.IsFinished() && wants != nil && state.EqualVersion(wants, n.Report.Version)
		c.Active = (len(n.Admitted) > 0 || n.Report.Exists) && !n.IsFinished()
	}
	if p := n.startable(); p != nil && !c.Finished {
		c.Held, c.Active = append(slices.Clone(c.Held), p), true
	}
	c.WindingDown = n.Report != nil && n.Report.Finished != nil && !n.IsFinished() && wants != nil && state.EqualVersion(wants, n.Report.Version)
	c.Finished = c.Finished || wants.FinishedAtSource()
	if n.Reported {
		return c
	}
	for _, j := range n.Past {
		c.UIDs = append(slices.Clone(c.UIDs), j.UID)
		c.Finished = c.Finished || wants != nil && j.Finished.AppliesTo(wants)
	}
	if last == nil {
		return c
	}
	if held := n.runningVersion(wants, last.Incarnations); held != nil && !c.Finished {
		c.Held = append(slices.Clone(c.Held), held)
	}
	for i := range last.Incarnations {
		if inc := &last.Incarnations[i]; !inc.Foreign {
			c.UIDs = append(slices.Clone(c.UIDs), inc.UID)
			c.Active = !c.Finished
		}
	}
	c.Held = append(slices.Clone(c.Held), unknownVersions(last.Incarnations, c.Held)...)
	return c
}

// startable returns the version that the worker may start because of its last order, before
// it reports that; nil if there is none.
func (n *Name) startable() *manifest.Pod {
	p := n.Order.Desired
	same := func(q *manifest.Pod) bool { return q != nil && state.EqualVersion(p, q) }
	switch {
	case p == nil, n.Order.Verdict.Answer != plan.Admit, !slices.ContainsFunc(n.Admitted, same):
		return nil
	case n.Report != nil && n.Report.Finished != nil && same(n.Report.Version):
		return nil
	}
	return p
}

// runningVersion returns the desired version in the size of its running containers; nil if
// none runs.
func (n *Name) runningVersion(wants *manifest.Pod, observed []runtime.Incarnation) *manifest.Pod {
	if !slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool { return plan.Runs(wants, &inc) }) {
		return nil
	}
	given := map[string]plan.Size{}
	for _, j := range n.Past {
		maps.Copy(given, j.Sizes)
	}
	return wants.WithSizes(plan.Sizes(wants, observed, given, false))
}

// ApplyReport returns the memory after n.Report, the report of the worker that followed
// before. It reports whether reservations changed.
func (n Name) ApplyReport(before *state.Report) (m Memory, changed bool) {
	var holds, admitted []*manifest.Pod
	for _, p := range n.Admitted {
		inForce := n.Report.Version != nil && state.EqualVersion(p, n.Report.Version)
		holding := inForce && n.Report.Exists && !n.IsFinished() || state.IsRunning(n.Report.Observed, p)
		switch {
		case holding && inForce:
			holds = append(holds, n.Report.Held...)
		case holding:
			holds = append(holds, p)
		}
		if holding || inForce || n.Order.Desired != nil && state.EqualVersion(p, n.Order.Desired) {
			admitted = append(admitted, p)
		}
	}
	// A version that is not admitted in its desired size may run in another one.
	if v := n.Report.Version; v != nil && state.IsRunning(n.Report.Observed, v) && !slices.ContainsFunc(n.Admitted, func(p *manifest.Pod) bool { return state.EqualVersion(p, v) }) {
		holds = append(holds, n.Report.Held...)
	}
	holds = append(holds, unknownVersions(n.Report.Observed, append(slices.Clone(n.Admitted), n.Report.Version))...)
	changed = !slices.EqualFunc(holds, n.Held, state.EqualSize) || len(admitted) != len(n.Admitted) || before == nil ||
		(before.Finished == nil) != (n.Report.Finished == nil) || !slices.Equal(before.UIDs, n.Report.UIDs) || before.Decision.Releasing != n.Report.Decision.Releasing
	m = n.Memory
	m.Held, m.Admitted = holds, admitted
	return m, changed
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
	size := manifest.SizeRequests(inc.Annotations[runtime.AnnotationSize])
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

// devicesOf returns how many devices of each resource an incarnation has. Its containers
// may share them.
func devicesOf(inc *runtime.Incarnation) v1.ResourceList {
	all := map[string]sets.Set[string]{}
	for _, resources := range allocation.Recorded(inc) {
		for name, ids := range resources {
			if all[name] == nil {
				all[name] = sets.New[string]()
			}
			all[name].Insert(ids...)
		}
	}
	list := v1.ResourceList{}
	for name, ids := range all {
		list[v1.ResourceName(name)] = *resource.NewQuantity(int64(ids.Len()), resource.DecimalSI)
	}
	return list
}

// HasRecordedDevices reports whether an observed container has the annotation with the IDs of
// its devices.
func (n *Name) HasRecordedDevices() bool {
	observed := n.observed()
	for i := range observed {
		if allocation.IsRecorded(&observed[i]) {
			return true
		}
	}
	return false
}

// DeviceAllocations returns the versions of a name that may have devices: admitted versions
// that have not finished, and observed versions that run. The values are the device IDs in
// the annotations of their containers, nil if there are none.
func (n *Name) DeviceAllocations() map[allocation.PodVersion]allocation.IDs {
	all := map[allocation.PodVersion]allocation.IDs{}
	for _, list := range [][]*manifest.Pod{n.Admitted, n.Held} {
		for _, p := range list {
			if n.Report == nil || !n.IsFinished() || !state.EqualVersion(p, n.Report.Version) {
				all[allocation.PodVersion{Key: n.Key, UID: p.UID, Hash: p.Hash}] = nil
			}
		}
	}
	observed := n.observed()
	for i := range observed {
		if inc := &observed[i]; !inc.Foreign && plan.Live(inc) {
			version := allocation.PodVersion{Key: n.Key, UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationHash]}
			all[version] = allocation.Recorded(inc)
		}
	}
	return all
}
