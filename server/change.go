package server

import (
	"cmp"
	"slices"
)

// Change leads from one View to a later one. A watcher is sent one for every
// state it can keep up with; what happened in between is in the next.
type Change struct {
	// View is the later one, but Pods are only those that differ.
	View
	// Whole says that Pods are all: there is no earlier View to start from.
	Whole bool `json:"whole,omitempty"`
	// Gone are the pods that the later one has not, in order.
	Gone []Key `json:"gone,omitempty"`
}

// Between is the Change that makes after of before, which may be nil.
func Between(before, after *View) *Change {
	c := &Change{View: *after}
	if before == nil {
		c.Whole = true
		return c
	}
	old := byKey(before.Pods)
	c.Pods = []*PodView{}
	for _, p := range after.Pods {
		if old[p.Key()] != p {
			c.Pods = append(c.Pods, p)
		}
		delete(old, p.Key())
	}
	for key := range old {
		c.Gone = append(c.Gone, key)
	}
	slices.SortFunc(c.Gone, Key.Compare)
	return c
}

// Apply returns the View that c makes of before, which may be nil only when c
// is Whole. Neither is changed; pods that c does not name keep their pointer.
func (c *Change) Apply(before *View) *View {
	after := c.View
	if c.Whole {
		return &after
	}
	changed := byKey(c.Pods)
	pods := slices.Clone(c.Pods)
	for _, p := range before.Pods {
		if changed[p.Key()] == nil && !slices.Contains(c.Gone, p.Key()) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *PodView) int { return a.Key().Compare(b.Key()) })
	after.Pods = pods
	return &after
}

func byKey(pods []*PodView) map[Key]*PodView {
	m := make(map[Key]*PodView, len(pods))
	for _, p := range pods {
		m[p.Key()] = p
	}
	return m
}

// Compare orders by namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}
