package server

import (
	"cmp"
	"slices"

	"podd/manifest/order"
)

// Change is the difference between two Views. A watcher that misses several Views receives a single
// Change.
type Change struct {
	// View is the later View, except that Pods contains only the pods that changed.
	View
	// IsComplete is set if there is no earlier View. In this case Pods contains all pods.
	IsComplete bool `json:"whole,omitempty"`
	// Removed are the pods of the earlier View that are not in the later View, sorted
	// by namespace and name.
	Removed []Key `json:"removed,omitempty"`
}

// diff returns the Change between two Views. The parameter earlier is the View before the Change,
// and the parameter later is the View after it. If earlier is nil, the Change is complete
// (IsComplete).
func diff(earlier, later *View) *Change {
	c := &Change{View: *later}
	if earlier == nil {
		c.IsComplete = true
		return c
	}
	earlierPods := podsByKey(earlier.Pods)
	c.Pods = []*PodView{}
	for _, p := range later.Pods {
		if earlierPods[p.Key()] != p {
			c.Pods = append(c.Pods, p)
		}
		delete(earlierPods, p.Key())
	}
	for key := range earlierPods {
		c.Removed = append(c.Removed, key)
	}
	order.Slice(c.Removed, Key.Compare)
	return c
}

// Apply returns the View that results if the change c is applied to an earlier View. earlier may be
// nil if c.IsComplete is set. Apply modifies neither c nor the earlier View. A pod that did not
// change keeps its pointer.
func (c *Change) Apply(earlier *View) *View {
	later := c.View
	if c.IsComplete {
		return &later
	}
	changedPods := podsByKey(c.Pods)
	pods := slices.Clone(c.Pods)
	for _, p := range earlier.Pods {
		if changedPods[p.Key()] == nil && !slices.Contains(c.Removed, p.Key()) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *PodView) int { return a.Key().Compare(b.Key()) })
	later.Pods = pods
	return &later
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
