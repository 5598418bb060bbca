package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime"
)

// userIDs returns the first of the host's IDs for the user namespaces of a name; 0 if it
// needs none. No two names have the same, and none has those of another agent's sandboxes.
// After a restart of podd, the sandboxes record them. A name keeps its IDs from one version
// to the next, because two versions of it never run at the same time.
func (r *Router) userIDs(key types.NamespacedName, e *entry, desired *manifest.Pod) uint32 {
	if !r.hasSnapshot || !e.needsUserIDs(desired) {
		return 0
	}
	if e.order.UserIDs > 0 {
		return e.order.UserIDs
	}
	if own := idsOf(r.observed[key], false); len(own) > 0 {
		return own[0]
	}
	taken := map[uint32]bool{}
	for _, other := range r.entries {
		taken[other.order.UserIDs] = true
	}
	for _, p := range r.observed {
		for _, ids := range append(idsOf(p, false), idsOf(p, true)...) {
			taken[ids] = true
		}
	}
	ids := uint32(render.IDsPerPod) // the first ones are the host's own users
	for taken[ids] {
		ids += render.IDsPerPod
	}
	return ids
}

// needsUserIDs reports whether the desired version of a name, or one that may still run,
// has a user namespace.
func (e *entry) needsUserIDs(desired *manifest.Pod) bool {
	versions := append([]*manifest.Pod{desired}, e.holds...)
	if e.report != nil {
		versions = append(versions, e.report.Version)
	}
	for _, p := range versions {
		if p != nil && manifest.HasUserNamespace(&p.Spec.Spec) {
			return true
		}
	}
	return false
}

// idsOf returns the IDs of a name's sandboxes: foreign ones or its own.
func idsOf(p *runtime.Pod, foreign bool) []uint32 {
	var all []uint32
	if p == nil {
		return nil
	}
	for i := range p.Incarnations {
		inc := &p.Incarnations[i]
		if ids := inc.UserIDs(); inc.Foreign == foreign && ids >= render.IDsPerPod && ids%render.IDsPerPod == 0 {
			all = append(all, ids)
		}
	}
	return all
}
