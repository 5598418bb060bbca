package server

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// LatestView stores the newest View. Only one goroutine may call Publish and Update. Any number of
// goroutines may call the other methods.
type LatestView struct {
	mu            sync.Mutex // guards all following fields
	view          *View
	newViewSignal chan struct{} // closed when a newer View is stored
	// isIncomplete is set from a call of Update to the next call of View or Publish. While it is set,
	// view.Pods is not computed yet. View computes view.Pods by applying changes to pods.
	isIncomplete bool
	pods         []*PodView
	changes      map[types.NamespacedName]*PodView // a nil value removes the pod
}

var _ Viewer = (*LatestView)(nil)

// NewLatestView returns a LatestView with the newest View v, which must not be nil.
func NewLatestView(v *View) *LatestView {
	return &LatestView{
		view: v, newViewSignal: make(chan struct{}), pods: v.Pods, changes: map[types.NamespacedName]*PodView{},
	}
}

// Publish makes v the newest View and wakes waiting readers. The revision of v must be
// greater than the revision of the previous View.
func (l *LatestView) Publish(v *View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods, l.isIncomplete = v.Pods, false
	clear(l.changes)
	l.storeLocked(v)
}

// Update works like Publish, but sets v.Pods to the result of applying changes to the pods of the
// previous View. A nil value in changes removes a pod. The list of pods is built only when the View
// is read. Otherwise a burst of changes to thousands of pods would copy the list for many Views
// that are never read.
func (l *LatestView) Update(v *View, changes map[types.NamespacedName]*PodView) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.changes, changes)
	l.isIncomplete = true
	l.storeLocked(v)
}

func (l *LatestView) storeLocked(v *View) {
	l.view = v
	close(l.newViewSignal)
	l.newViewSignal = make(chan struct{})
}

// View implements Viewer.
func (l *LatestView) View() *View {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isIncomplete {
		l.pods = applyChanges(l.pods, l.changes)
		l.view.Pods, l.isIncomplete = l.pods, false
		clear(l.changes)
	}
	return l.view
}

// Changed implements Viewer.
func (l *LatestView) Changed(afterRevision uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.view.Revision != afterRevision {
		return closedChannel
	}
	return l.newViewSignal
}

// applyChanges applies changes to a copy of the given pods and returns the copy, sorted by
// namespace and name. The given pods must be sorted. If few pods change, applyChanges inserts them
// into the copy, because sorting thousands of pods each time would take longer.
func applyChanges(pods []*PodView, changes map[types.NamespacedName]*PodView) []*PodView {
	if len(changes) == 0 {
		return pods
	}
	if len(changes) > len(pods)/8 {
		return mergeChanges(pods, changes)
	}
	pods = slices.Clone(pods)
	for key, p := range changes {
		index, found := slices.BinarySearchFunc(pods, key, compareName)
		switch {
		case p == nil && found:
			pods = slices.Delete(pods, index, index+1)
		case p != nil && found:
			pods[index] = p
		case p != nil:
			pods = append(pods, p) // slices.Insert would add 3 kB to the program
			copy(pods[index+1:], pods[index:])
			pods[index] = p
		}
	}
	return pods
}

// mergeChanges works like applyChanges. It is faster for many changes, because it does not move all
// later pods for each inserted pod.
func mergeChanges(pods []*PodView, changes map[types.NamespacedName]*PodView) []*PodView {
	merged := make([]*PodView, 0, len(pods)+len(changes))
	for _, p := range pods {
		if _, isChanged := changes[types.NamespacedName(p.Key())]; !isChanged {
			merged = append(merged, p)
		}
	}
	for _, p := range changes {
		if p != nil {
			merged = append(merged, p)
		}
	}
	slices.SortFunc(merged, func(a, b *PodView) int { return compareName(a, types.NamespacedName(b.Key())) })
	return merged
}

func compareName(p *PodView, key types.NamespacedName) int {
	return cmp.Or(cmp.Compare(p.Pod.Namespace, key.Namespace), cmp.Compare(p.Pod.Name, key.Name))
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
