package admission

import (
	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime"
)

// userIDs returns the first of the host's IDs for the user namespaces of a name; 0 if it
// needs none. No two names have the same, and none has those of another agent's sandboxes.
// After a restart of podd, the sandboxes record them. A name retained its IDs from one version
// to the next, because two versions of it never run at the same time.
func (d *decider) userIDs(name *Name, desired *manifest.Pod) uint32 {
	if !d.in.HasSnapshot || !name.needsUserIDs(desired) {
		return 0
	}
	if name.Order.UserIDs > 0 {
		return name.Order.UserIDs
	}
	if own := idsOf(name.Observed, false); len(own) > 0 {
		return own[0]
	}
	ids := uint32(render.IDsPerPod) // the first ones are the host's own users
	for d.isTaken(ids) {
		ids += render.IDsPerPod
	}
	d.taken[ids] = true
	return ids
}

// isTaken reports whether a name or another agent's sandbox has IDs that start with ids.
func (d *decider) isTaken(ids uint32) bool {
	if d.taken == nil {
		d.taken = map[uint32]bool{}
		for _, name := range d.names {
			d.taken[name.Order.UserIDs] = true
		}
		for _, p := range d.in.Observed {
			for _, ids := range append(idsOf(p, false), idsOf(p, true)...) {
				d.taken[ids] = true
			}
		}
	}
	return d.taken[ids]
}

// needsUserIDs reports whether the desired version of a name, or one that may still run,
// has a user namespace.
func (n *Name) needsUserIDs(desired *manifest.Pod) bool {
	versions := append([]*manifest.Pod{desired}, n.Held...)
	if n.Report != nil {
		versions = append(versions, n.Report.Version)
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
		if ids := inc.FirstHostUID(); inc.Foreign == foreign && ids >= render.IDsPerPod && ids%render.IDsPerPod == 0 {
			all = append(all, ids)
		}
	}
	return all
}
