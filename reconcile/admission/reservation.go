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

// newCandidate returns the candidate for a name, without EarlierNames. desired may be nil. mustStop
// reports whether the pod must be stopped because it is not desired any more.
func (n *NameFacts) newCandidate(desired *manifest.Pod, mustStop bool) candidate {
	c := n.newBaseCandidate(desired)
	c.Releasing = c.Releasing || mustStop
	c.Unconfirmed = desired == nil && !mustStop && manifest.KindTraits(cmp.Or(n.sourceKind, sourceKindOf(n.observedIncarnations()))).DeletedOnlyBySource
	return c
}

// newBaseCandidate returns the candidate for a name without Unconfirmed and EarlierNames. Until the
// worker has reported on its first observation, reservations are computed from the observation,
// so that running pods keep their reservations.
func (n *NameFacts) newBaseCandidate(desired *manifest.Pod) candidate {
	c := candidate{Key: n.Key, Desired: desired, ReservedVersions: n.ReservedVersions}
	if n.Report != nil {
		c.UIDs, c.Releasing = n.Report.UIDs, n.Report.Decision.Releasing
		c.WaitsForRestart = n.waitsForRestart(desired)
		c.Finished = n.IsFinished() && desired != nil && state.EqualVersion(desired, n.Report.Version) && !c.WaitsForRestart
		c.Active = (len(n.Admitted) > 0 || n.Report.ExistsOnNode) && !n.IsFinished()
	}
	if p := n.startableVersion(); p != nil && !c.Finished {
		c.ReservedVersions, c.Active = append(slices.Clone(c.ReservedVersions), p), true
	}
	c.WindingDown = n.Report != nil && n.Report.Finished != nil && !n.IsFinished() && desired != nil && state.EqualVersion(desired, n.Report.Version)
	c.Finished = c.Finished || desired.HasFinishedAtSource()
	if n.HasReported {
		return c
	}
	for _, j := range n.PastRecords {
		c.UIDs = append(slices.Clone(c.UIDs), j.UID)
		if desired != nil && j.Finished.AppliesTo(desired) {
			c.WaitsForRestart = j.Finished.WaitsForRestart()
			c.Finished, c.WindingDown = !c.WaitsForRestart, c.WaitsForRestart
		}
	}
	if n.Observed == nil {
		return c
	}
	if version := n.runningVersion(desired, n.Observed.Incarnations); version != nil && !c.Finished {
		c.ReservedVersions = append(slices.Clone(c.ReservedVersions), version)
	}
	for i := range n.Observed.Incarnations {
		if inc := &n.Observed.Incarnations[i]; !inc.Foreign {
			c.UIDs = append(slices.Clone(c.UIDs), inc.UID)
			c.Active = !c.Finished
		}
	}
	c.ReservedVersions = append(slices.Clone(c.ReservedVersions), unknownVersions(n.Observed.Incarnations, c.ReservedVersions)...)
	return c
}

// startableVersion returns the version that the last order allows the worker to start, or nil if
// there is none. The worker may already have started this version, but not reported it yet.
func (n *NameFacts) startableVersion() *manifest.Pod {
	p := n.Order.Desired
	isEqual := func(q *manifest.Pod) bool { return q != nil && state.EqualVersion(p, q) }
	switch {
	case p == nil, n.Order.Verdict.Answer != plan.Admit, !slices.ContainsFunc(n.Admitted, isEqual):
		return nil
	case n.Report != nil && n.Report.Finished != nil && isEqual(n.Report.Version):
		if !n.waitsForRestart(p) || !n.IsFinished() {
			return nil
		}
	}
	return p
}

// waitsForRestart reports whether desired was evicted and runs again. desired may be nil.
func (n *NameFacts) waitsForRestart(desired *manifest.Pod) bool {
	return n.Report != nil && desired != nil && n.Report.Version != nil && state.EqualVersion(desired, n.Report.Version) && n.Report.Finished.WaitsForRestart()
}

// runningVersion returns the desired version with the sizes of its observed containers; nil if
// no incarnation of the desired version was observed. For a pod of a cluster, the incarnation must be
// live, because a kubelet admits a stopped pod again after each of its starts.
func (n *NameFacts) runningVersion(desired *manifest.Pod, observed []runtime.Incarnation) *manifest.Pod {
	if !slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool {
		return plan.IsCreatedFrom(&inc, desired) && (plan.IsLive(&inc) || !desired.Traits.FailsIfRejected)
	}) {
		return nil
	}
	sizes := map[string]plan.Size{}
	for _, j := range n.PastRecords {
		maps.Copy(sizes, j.Sizes)
	}
	return desired.WithSizes(plan.ContainerSizes(desired, observed, sizes, false))
}

// ApplyReport returns the memory of a name after its worker has sent n.Report. oldReport is the
// previous report of the worker, or nil if n.Report is the first. changed reports whether the
// reservations of the name have changed.
func (n NameFacts) ApplyReport(oldReport *state.Report) (m Memory, changed bool) {
	var reserved, admitted []*manifest.Pod
	for _, p := range n.admittedVersions() {
		inForce := n.Report.Version != nil && state.EqualVersion(p, n.Report.Version)
		holds := inForce && n.Report.ExistsOnNode && !n.IsFinished() || state.IsRunning(n.Report.Observed, p)
		switch {
		case holds && inForce:
			reserved = append(reserved, n.Report.ReservedVersions...)
		case holds:
			reserved = append(reserved, p)
		}
		if holds || inForce || n.Order.Desired != nil && state.EqualVersion(p, n.Order.Desired) {
			admitted = append(admitted, p)
		}
	}
	reserved = append(reserved, unknownVersions(n.Report.Observed, append(slices.Clone(n.Admitted), n.Report.Version))...)
	changed = !slices.EqualFunc(reserved, n.ReservedVersions, state.EqualSize) || len(admitted) != len(n.Admitted) || oldReport == nil ||
		(oldReport.Finished == nil) != (n.Report.Finished == nil) || !slices.Equal(oldReport.UIDs, n.Report.UIDs) || oldReport.Decision.Releasing != n.Report.Decision.Releasing
	m = n.Memory
	m.ReservedVersions, m.Admitted = reserved, admitted
	return m, changed
}

// admittedVersions returns n.Admitted and the version in force of n.Report if it runs. A running version
// was admitted before, even if it is not in n.Admitted, for example because its desired size is not
// admitted.
func (n *NameFacts) admittedVersions() []*manifest.Pod {
	v := n.Report.Version
	if v == nil || !state.IsRunning(n.Report.Observed, v) || slices.ContainsFunc(n.Admitted, func(p *manifest.Pod) bool { return state.EqualVersion(p, v) }) {
		return n.Admitted
	}
	return append(slices.Clone(n.Admitted), v)
}

// unknownVersions returns a version for each running incarnation that is not foreign, unless
// knownVersions contains this version. podd has not read the manifest of an unknown version since
// podd was started. Therefore the reservations of the version are read from the annotations of the
// sandbox and its containers.
func unknownVersions(observed []runtime.Incarnation, knownVersions []*manifest.Pod) []*manifest.Pod {
	var versions []*manifest.Pod
	for i := range observed {
		inc := &observed[i]
		if inc.Foreign || !plan.IsLive(inc) || slices.ContainsFunc(knownVersions, func(p *manifest.Pod) bool { return p != nil && plan.IsCreatedFrom(inc, p) }) {
			continue
		}
		versions = append(versions, unknownVersion(inc))
	}
	return versions
}

// unknownVersion returns a version with the parts of the manifest that the annotations of sandbox
// inc and its containers contain.
func unknownVersion(inc *runtime.Incarnation) *manifest.Pod {
	p := &manifest.Pod{UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationPodHash], Object: &v1.Pod{}}
	p.Origin.Path = "an earlier version"
	size := manifest.ParseSize(inc.Annotations[runtime.AnnotationSize])
	p.Object.Spec.Resources = &v1.ResourceRequirements{Requests: size.Requests}
	if devices := devicesOf(inc); len(devices) > 0 {
		c := v1.Container{Resources: v1.ResourceRequirements{Requests: devices}}
		p.Object.Spec.Containers = append(p.Object.Spec.Containers, c)
	}
	for i := range inc.Containers {
		c := v1.Container{Name: inc.Containers[i].Name}
		// An annotation that cannot be decoded was not written by podd and reserves
		// nothing.
		if json.Unmarshal([]byte(inc.Containers[i].Annotations[runtime.AnnotationContainerPorts]), &c.Ports) == nil {
			p.Object.Spec.Containers = append(p.Object.Spec.Containers, c)
		}
	}
	return p
}

// devicesOf returns the number of devices of an incarnation, by resource. A device that several
// containers of the incarnation share is counted once.
func devicesOf(inc *runtime.Incarnation) v1.ResourceList {
	idsByResource := map[string]sets.Set[string]{}
	for _, resources := range allocation.RecordedIDs(inc) {
		for name, ids := range resources {
			if idsByResource[name] == nil {
				idsByResource[name] = sets.New[string]()
			}
			idsByResource[name].Insert(ids...)
		}
	}
	amounts := v1.ResourceList{}
	for name, ids := range idsByResource {
		amounts[v1.ResourceName(name)] = *resource.NewQuantity(int64(ids.Len()), resource.DecimalSI)
	}
	return amounts
}

// HasRecordedDevices reports whether an observed container has the annotation with the IDs of
// its devices.
func (n *NameFacts) HasRecordedDevices() bool {
	observed := n.observedIncarnations()
	for i := range observed {
		if allocation.HasRecordedIDs(&observed[i]) {
			return true
		}
	}
	return false
}

// DeviceAllocations returns the versions of a name that may have devices, with the IDs of their
// devices. These are the versions in Admitted and ReservedVersions that have not finished, and the
// observed versions that run. The IDs of observed versions are from the annotations of their
// containers. The IDs of other versions are nil.
func (n *NameFacts) DeviceAllocations() map[allocation.PodVersion]allocation.IDs {
	allocations := map[allocation.PodVersion]allocation.IDs{}
	for _, list := range [][]*manifest.Pod{n.Admitted, n.ReservedVersions} {
		for _, p := range list {
			if n.Report == nil || !n.IsFinished() || !state.EqualVersion(p, n.Report.Version) {
				allocations[allocation.PodVersion{Key: n.Key, UID: p.UID, Hash: p.Hash}] = nil
			}
		}
	}
	observed := n.observedIncarnations()
	for i := range observed {
		if inc := &observed[i]; !inc.Foreign && plan.IsLive(inc) {
			version := allocation.PodVersion{Key: n.Key, UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationPodHash]}
			allocations[version] = allocation.RecordedIDs(inc)
		}
	}
	return allocations
}
