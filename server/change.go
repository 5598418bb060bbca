package server

import (
	"cmp"
	"slices"
)

// Change is the difference between two Views. A watcher that misses several Views receives a single
// Change.
type Change struct {
	// View is the later View, except that Pods contains only the pods that changed.
	View
	// IsComplete is set if Pods contains all pods, because there is no earlier View.
	IsComplete bool `json:"whole,omitempty"`
	// Removed are the pods of the earlier View that are not in the later View, sorted
	// by namespace and name.
	Removed []Key `json:"removed,omitempty"`
}

// diff returns the Change between two Views: before is the earlier View and after is the later
// View. If before is nil, the Change is complete (IsComplete).
func diff(before, after *View) *Change {
	c := &Change{View: *after}
	if before == nil {
		c.IsComplete = true
		return c
	}
	old := podsByKey(before.Pods)
	c.Pods = []*PodView{}
	for _, p := range after.Pods {
		if old[p.Key()] != p {
			c.Pods = append(c.Pods, p)
		}
		delete(old, p.Key())
	}
	for key := range old {
		c.Removed = append(c.Removed, key)
	}
	slices.SortFunc(c.Removed, Key.Compare)
	return c
}

// Apply returns the View that results if the change c is applied to an earlier View, which the
// parameter before contains. This parameter may be nil if c.IsComplete is set. Apply modifies
// neither c nor the earlier View. A pod that did not change keeps its pointer.
func (c *Change) Apply(before *View) *View {
	after := c.View
	if c.IsComplete {
		return &after
	}
	changed := podsByKey(c.Pods)
	pods := slices.Clone(c.Pods)
	for _, p := range before.Pods {
		if changed[p.Key()] == nil && !slices.Contains(c.Removed, p.Key()) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *PodView) int { return a.Key().Compare(b.Key()) })
	after.Pods = pods
	return &after
}

func podsByKey(pods []*PodView) map[Key]*PodView {
	m := make(map[Key]*PodView, len(pods))
	for _, p := range pods {
		m[p.Key()] = p
	}
	return m
}

// Compare orders keys by namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}
