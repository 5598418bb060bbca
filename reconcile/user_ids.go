package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime"
)

// userIDs is the first of the node's ids for the user namespaces of a name, 0
// while it needs none. No two names have the same, nor do those of others on
// this runtime that podd can see; over a restart of podd the sandboxes tell. A
// name keeps its ids from one version to the next: never do two of them run.
func (r *Router) userIDs(key types.NamespacedName, e *entry, desired *manifest.Pod) uint32 {
	if !r.seen || !e.needsUserIDs(desired) {
		return 0
	}
	if e.order.userIDs > 0 {
		return e.order.userIDs
	}
	if own := idsOf(r.last[key], false); len(own) > 0 {
		return own[0]
	}
	taken := map[uint32]bool{}
	for _, other := range r.entries {
		taken[other.order.userIDs] = true
	}
	for _, p := range r.last {
		for _, ids := range append(idsOf(p, false), idsOf(p, true)...) {
			taken[ids] = true
		}
	}
	ids := uint32(render.IDsPerPod) // the first ones are the node's own users
	for taken[ids] {
		ids += render.IDsPerPod
	}
	return ids
}

// needsUserIDs: the wanted version may wait for one that runs, or may run again.
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

// idsOf are the ids that the sandboxes of a name have, ours or those of others.
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
