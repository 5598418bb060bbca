package admission

import (
	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime"
)

// firstUserID returns the first of the host's user IDs for the user namespaces of a name; 0 if the
// name needs no user namespace. The IDs differ from the IDs of all other names and of the sandboxes
// of other agents. After a restart of podd, the IDs are read from the sandboxes. All versions of a
// name use the same IDs, which is possible because two versions never run at the same time.
func (d *decider) firstUserID(name *NameFacts, desired *manifest.Pod) uint32 {
	if !d.in.HasSnapshot || !name.needsUserIDs(desired) {
		return 0
	}
	if name.Order.FirstUserID > 0 {
		return name.Order.FirstUserID
	}
	if own := firstUserIDs(name.Observed, false); len(own) > 0 {
		return own[0]
	}
	firstID := uint32(render.IDsPerPod) // skip the lower IDs, which belong to the users of the host
	for d.isUsedID(firstID) {
		firstID += render.IDsPerPod
	}
	d.usedUserIDs[firstID] = true
	return firstID
}

// isUsedID reports whether a name or a sandbox uses the block of user IDs with the first ID
// firstID. Sandboxes of other agents also count.
func (d *decider) isUsedID(firstID uint32) bool {
	if d.usedUserIDs == nil {
		d.usedUserIDs = map[uint32]bool{}
		for _, name := range d.names {
			d.usedUserIDs[name.Order.FirstUserID] = true
		}
		for _, p := range d.in.Observed {
			for _, id := range append(firstUserIDs(p, false), firstUserIDs(p, true)...) {
				d.usedUserIDs[id] = true
			}
		}
	}
	return d.usedUserIDs[firstID]
}

// needsUserIDs reports whether the desired version of a name, or a version that may still run,
// has a user namespace. desired may be nil.
func (n *NameFacts) needsUserIDs(desired *manifest.Pod) bool {
	versions := append([]*manifest.Pod{desired}, n.ReservedVersions...)
	if n.Report != nil {
		versions = append(versions, n.Report.Version)
	}
	for _, p := range versions {
		if p != nil && manifest.HasUserNamespace(&p.Object.Spec) {
			return true
		}
	}
	return false
}

// firstUserIDs returns the first user ID of each foreign sandbox of p, or of each sandbox of podd
// if foreign is false. p may be nil.
func firstUserIDs(p *runtime.Pod, foreign bool) []uint32 {
	var all []uint32
	if p == nil {
		return nil
	}
	for i := range p.Incarnations {
		inc := &p.Incarnations[i]
		if id := inc.FirstHostUID(); inc.Foreign == foreign && id >= render.IDsPerPod && id%render.IDsPerPod == 0 {
			all = append(all, id)
		}
	}
	return all
}
