package admission

import (
	"cmp"
	"math"
	"slices"

	"podd/manifest"
	"podd/manifest/order"
	"podd/runtime"
)

// userIDs returns the host's user IDs for the user namespace of the next sandbox of a name. The
// result is zero if the name needs no user namespace, or if no IDs are free. The IDs differ from
// the IDs of all other names and of the sandboxes of other agents. After a restart of podd, they
// are read from the sandboxes.
//
// All versions of a name use the same IDs, which is possible because two versions never run at the
// same time. If the number of IDs per pod or Limits.HostIDs has changed, an existing sandbox keeps its
// IDs, and the next sandbox gets others.
func (d *decider) userIDs(name *NameFacts, desired *manifest.Pod) runtime.IDRange {
	if !d.in.HasSnapshot || !name.needsUserIDs(desired) {
		return runtime.IDRange{}
	}
	length := cmp.Or(d.in.Limits.IDsPerPod, runtime.DefaultIDsPerPod)
	all := cmp.Or(d.in.Limits.HostIDs, runtime.IDRange{First: length, Length: math.MaxUint32 - length})
	for _, r := range append([]runtime.IDRange{name.Order.UserIDs}, recordedIDs(name.Observed)...) {
		if r.Length == length && r.First >= all.First && r.End() <= all.End() {
			return r
		}
	}
	free := freeIDs(d.listUserIDs(), all, length)
	if free != (runtime.IDRange{}) {
		d.usedUserIDs = insertIDs(d.usedUserIDs, free)
	}
	return free
}

// freeIDs returns the lowest free range of this length in all whose first ID is a multiple of length.
// The range overlaps none of usedRanges, which are sorted. all.First must be a positive multiple of
// length, because the IDs below length belong to the users of the host. freeIDs returns the zero range
// if no range is free.
func freeIDs(usedRanges []runtime.IDRange, all runtime.IDRange, length uint32) runtime.IDRange {
	n := uint64(length)
	first := uint64(all.First)
	for _, r := range usedRanges {
		if uint64(r.First) >= first+n {
			break
		}
		if r.End() > first {
			first = (r.End() + n - 1) / n * n
		}
	}
	if first+n > min(all.End(), math.MaxUint32) { // the ID MaxUint32 belongs to no user
		return runtime.IDRange{}
	}
	return runtime.IDRange{First: uint32(first), Length: length}
}

// insertIDs inserts a range into sorted ranges. slices.Insert would add 3 kB to the program for this type.
func insertIDs(sorted []runtime.IDRange, r runtime.IDRange) []runtime.IDRange {
	i, _ := slices.BinarySearchFunc(sorted, r, compareIDs)
	sorted = append(sorted, r)
	copy(sorted[i+1:], sorted[i:])
	sorted[i] = r
	return sorted
}

func compareIDs(a, b runtime.IDRange) int { return cmp.Compare(a.First, b.First) }

// listUserIDs returns the host IDs that names or sandboxes use, sorted. It includes the sandboxes
// of other agents.
func (d *decider) listUserIDs() []runtime.IDRange {
	if d.usedUserIDs != nil {
		return d.usedUserIDs
	}
	d.usedUserIDs = []runtime.IDRange{}
	for _, name := range d.names {
		if r := name.Order.UserIDs; r.Length > 0 {
			d.usedUserIDs = append(d.usedUserIDs, r)
		}
	}
	for _, p := range d.in.Observed {
		d.usedUserIDs = append(d.usedUserIDs, recordedIDs(p)...)
		d.usedUserIDs = append(d.usedUserIDs, foreignIDs(p)...)
	}
	order.Slice(d.usedUserIDs, compareIDs)
	return d.usedUserIDs
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

// recordedIDs returns the host IDs of each sandbox of p that podd created. p may be nil.
func recordedIDs(p *runtime.Pod) []runtime.IDRange {
	if p == nil {
		return nil
	}
	var ranges []runtime.IDRange
	for i := range p.Incarnations {
		if r := p.Incarnations[i].HostIDs(); r.Length > 0 {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

// foreignIDs returns the host IDs of the foreign sandboxes of p. p may be nil.
func foreignIDs(p *runtime.Pod) []runtime.IDRange {
	if p == nil {
		return nil
	}
	var ranges []runtime.IDRange
	for i := range p.Incarnations {
		if inc := &p.Incarnations[i]; inc.Foreign {
			ranges = append(ranges, inc.MappedIDs...)
		}
	}
	return ranges
}
