package read

import (
	"slices"
	"sort"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"

	"podd/manifest/order"
	"podd/server"
	"podd/server/kube/resource"
)

// A store retains at least the last maxChanges changes of a resource and at most about
// 2*maxChanges. It retains fewer if they need more than maxChangeBytes. The client of a watcher
// that needs older changes must list again.
const (
	maxChanges     = 512
	maxChangeBytes = 8 << 20
	minChanges     = 8 // retained even if the changes need more than maxChangeBytes
)

// A store retains the served objects and their revisions. The first revision is the revision of the
// View. Each change has its own revision. If two changes had the same revision, a watcher that is
// disconnected between them would miss the second change.
type store struct {
	state  server.Viewer
	events EventSource

	mu     sync.Mutex // guards all following fields
	rev    uint64
	states map[*resource.Definition]*resourceState
}

// resourceState is the state of a resource in a store. Its slices are shared with readers. Code may
// append to a slice or replace a slice, but must not overwrite elements.
type resourceState struct {
	isInitialized    bool
	view             *server.View      // View from which items were taken
	changed          <-chan struct{}   // closed when the state is outdated
	items            []resource.Item   // items of the objects in entries, in the same order
	entries          []*resource.Entry // sorted by key
	changes          []change          // in order of revision
	bytes            int               // sum of change.bytes
	retainedAfterRev uint64            // changes contains all changes after this revision
}

// change is an added, modified or deleted object. newEntry and oldEntry are the new and the old
// state of the object. The revision of the change is the revision of newEntry. If the object was
// deleted, this entry contains the last state of the object.
type change struct {
	kind               watch.EventType
	newEntry, oldEntry *resource.Entry // oldEntry is nil if the object was added
	bytes              int             // encoded size of both entries
}

func newStore(state server.Viewer, events EventSource) *store {
	return &store{state: state, events: events, rev: state.View().Revision, states: map[*resource.Definition]*resourceState{}}
}

// list returns all objects of a resource, sorted by key, and the newest revision.
func (s *store) list(r *resource.Definition) (entries []*resource.Entry, rev uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updateStateLocked(r).entries, s.rev
}

// changesAfter returns the changes with a revision greater than rev, the newest revision, and a
// channel that is closed when there may be more changes. isRetained is false if changes after rev
// are no longer retained or rev is in the future.
func (s *store) changesAfter(r *resource.Definition, rev uint64) (changes []change, newest uint64, changed <-chan struct{}, isRetained bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.updateStateLocked(r)
	firstNewer := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].newEntry.Rev > rev })
	return t.changes[firstNewer:], s.rev, t.changed, t.retainedAfterRev <= rev && rev <= s.rev
}

// updateStateLocked updates the state of a resource and returns it.
func (s *store) updateStateLocked(r *resource.Definition) *resourceState {
	t := s.states[r]
	if t == nil {
		t = &resourceState{}
		s.states[r] = t
	}
	if r.IsEvents {
		select {
		case <-t.changed:
		default:
			if t.isInitialized {
				return t
			}
		}
		events, rev := s.events.Events(0) // all retained events, so that events that were dropped are recorded as deleted
		t.changed = s.events.Changed(rev)
		s.updateLocked(r, t, eventItems(events))
		return t
	}
	v := s.state.View()
	s.rev = max(s.rev, v.Revision)
	if t.view != v {
		t.view, t.changed = v, s.state.Changed(v.Revision)
		s.updateLocked(r, t, r.Items(v))
	}
	return t
}

func eventItems(events []*v1.Event) []resource.Item {
	items := make([]resource.Item, 0, len(events))
	for _, e := range events {
		items = append(items, resource.Item{Key: server.Key{Namespace: e.Namespace, Name: e.Name}, Object: e})
	}
	order.Slice(items, func(a, b resource.Item) int { return a.Key.Compare(b.Key) })
	return items
}

// updateLocked replaces the items of t with the given items, which must be sorted by key, and
// records the changes. The first call records no changes, because no client has received an earlier
// state.
func (s *store) updateLocked(r *resource.Definition, t *resourceState, items []resource.Item) {
	entries := make([]*resource.Entry, 0, len(items))
	oldEntries, oldItems := t.entries, t.items
	for _, i := range items {
		for len(oldEntries) > 0 && oldEntries[0].Key.Compare(i.Key) < 0 {
			s.recordRemovalLocked(r, t, oldEntries[0])
			oldEntries, oldItems = oldEntries[1:], oldItems[1:]
		}
		var oldEntry *resource.Entry
		var oldItem resource.Item
		if len(oldEntries) > 0 && oldEntries[0].Key == i.Key {
			oldEntry, oldItem = oldEntries[0], oldItems[0]
			oldEntries, oldItems = oldEntries[1:], oldItems[1:]
		}
		entries = append(entries, s.updateEntryLocked(r, t, oldEntry, oldItem, i))
	}
	for _, e := range oldEntries {
		s.recordRemovalLocked(r, t, e)
	}
	t.entries, t.items = entries, items
	if !t.isInitialized {
		t.isInitialized, t.retainedAfterRev = true, s.rev
	}
	t.trim()
}

// updateEntryLocked returns the entry of an object. oldItem and newItem are the old and the new
// item of the object. oldEntry is the old entry; it is nil for a new object. If the object has not
// changed, updateEntryLocked returns the old entry. Otherwise it records the change and returns a
// new entry.
func (s *store) updateEntryLocked(r *resource.Definition, t *resourceState, oldEntry *resource.Entry, oldItem, newItem resource.Item) *resource.Entry {
	if oldEntry != nil && isUnchanged(r, oldItem.Object, newItem.Object) {
		return oldEntry
	}
	if oldEntry != nil && oldEntry.Object.GetUID() != newItem.Object.GetUID() {
		s.recordRemovalLocked(r, t, oldEntry)
		oldEntry = nil
	}
	s.rev++
	e := r.NewEntry(newItem, s.rev)
	kind := watch.Modified
	if oldEntry == nil {
		kind = watch.Added
	}
	t.record(change{kind: kind, newEntry: e, oldEntry: oldEntry})
	return e
}

// isUnchanged reports whether an object is unchanged. Events are compared by their
// resourceVersion.
func isUnchanged(r *resource.Definition, oldObject, newObject server.Object) bool {
	if r.IsEvents {
		return oldObject.GetResourceVersion() == newObject.GetResourceVersion()
	}
	return oldObject == newObject || equality.Semantic.DeepEqual(oldObject, newObject)
}

// withRevision returns a copy of e with the revision rev. The watch event of a deletion contains such a
// copy.
func withRevision(r *resource.Definition, e *resource.Entry, rev uint64) *resource.Entry {
	return r.NewEntry(resource.Item{Key: e.Key, Object: e.Object}, rev)
}

// recordRemovalLocked records the deletion of an object.
func (s *store) recordRemovalLocked(r *resource.Definition, t *resourceState, e *resource.Entry) {
	s.rev++
	t.record(change{kind: watch.Deleted, newEntry: withRevision(r, e, s.rev), oldEntry: e})
}

// record retains a change. Before the state is initialized, it ignores changes, because they only
// add the initial objects.
func (t *resourceState) record(c change) {
	if !t.isInitialized {
		return
	}
	c.bytes = len(c.newEntry.JSON())
	if c.oldEntry != nil {
		c.bytes += len(c.oldEntry.JSON())
	}
	t.changes, t.bytes = append(t.changes, c), t.bytes+c.bytes
}

// trim drops about the older half of the changes if the store retains too many changes.
func (t *resourceState) trim() {
	if len(t.changes) <= 2*maxChanges && t.bytes <= maxChangeBytes {
		return
	}
	changes := t.changes
	for len(changes) > maxChanges || t.bytes > maxChangeBytes/2 && len(changes) > minChanges {
		t.retainedAfterRev, t.bytes = changes[0].newEntry.Rev, t.bytes-changes[0].bytes
		changes = changes[1:]
	}
	t.changes = slices.Clone(changes) // Clone lets the garbage collector free the dropped changes
}

// noEvents is an EventSource without events.
type noEvents struct{}

// Events implements EventSource.
func (noEvents) Events(uint64) ([]*v1.Event, uint64) { return nil, 0 }

// Changed implements EventSource.
func (noEvents) Changed(uint64) <-chan struct{} { return nil }
