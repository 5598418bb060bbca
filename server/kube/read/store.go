package read

import (
	"slices"
	"sort"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"

	"podd/server"
	"podd/server/kube/resource"
)

// A store retains at least maxChanges changes of a resource, unless they need more
// than maxChangeBytes, and at most about twice as many. A watcher that needs older
// changes must list again.
const (
	maxChanges     = 512
	maxChangeBytes = 8 << 20
	minChanges     = 8 // even if they are large
)

// store retains the served objects and their revisions. Revisions start with the
// View's and increase by one with each change. Two changes never have the same
// revision, because a watcher that is disconnected between them would miss the
// second.
type store struct {
	state  server.Viewer
	events Events

	mu     sync.Mutex // guards all following fields
	rev    uint64
	states map[*resource.Definition]*resourceState
}

// resourceState is the state of a resource in a store. Its slices are shared with
// readers: they may be appended to and replaced, but elements are never
// overwritten.
type resourceState struct {
	initialized bool
	view        *server.View      // the View that it was made of
	changed     <-chan struct{}   // closed when it is outdated
	sources     []resource.Item   // the sources of entries, in the same order
	entries     []*resource.Entry // sorted by key
	changes     []change          // in order of revision
	bytes       int               // size of changes
	since       uint64            // all later changes are in changes
}

// change is an added, modified or deleted object, at the revision of now. If it was
// deleted, now is its last state.
type change struct {
	kind        watch.EventType
	now, before *resource.Entry // before is nil if the object was added
	bytes       int             // encoded size of both
}

func newStore(state server.Viewer, events Events) *store {
	return &store{state: state, events: events, rev: state.View().Revision, states: map[*resource.Definition]*resourceState{}}
}

// list returns all objects of a resource, and their revision.
func (s *store) list(r *resource.Definition) ([]*resource.Entry, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updatedLocked(r).entries, s.rev
}

// after returns the changes since a revision, the newest revision, and a channel
// that is closed when there may be more changes. known is false if the revision is
// too old or in the future.
func (s *store) after(r *resource.Definition, rev uint64) (changes []change, now uint64, more <-chan struct{}, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.updatedLocked(r)
	first := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].now.Rev > rev })
	return t.changes[first:], s.rev, t.changed, t.since <= rev && rev <= s.rev
}

// updatedLocked returns the current state of a resource.
func (s *store) updatedLocked(r *resource.Definition) *resourceState {
	t := s.states[r]
	if t == nil {
		t = &resourceState{}
		s.states[r] = t
	}
	if r.Events {
		select {
		case <-t.changed:
		default:
			if t.initialized {
				return t
			}
		}
		events, rev := s.events.Events(0) // dropped events are deleted
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
	all := make([]resource.Item, 0, len(events))
	for _, e := range events {
		all = append(all, resource.Item{Key: server.Key{Namespace: e.Namespace, Name: e.Name}, Object: e})
	}
	slices.SortFunc(all, func(a, b resource.Item) int { return a.Key.Compare(b.Key) })
	return all
}

// updateLocked updates t to items, which must be sorted by key, and records the
// changes. The first call records none, because no client has an earlier state.
func (s *store) updateLocked(r *resource.Definition, t *resourceState, items []resource.Item) {
	entries := make([]*resource.Entry, 0, len(items))
	old, sources := t.entries, t.sources
	for _, i := range items {
		for len(old) > 0 && old[0].Key.Compare(i.Key) < 0 {
			s.removedLocked(r, t, old[0])
			old, sources = old[1:], sources[1:]
		}
		var before *resource.Entry
		var source resource.Item
		if len(old) > 0 && old[0].Key == i.Key {
			before, source = old[0], sources[0]
			old, sources = old[1:], sources[1:]
		}
		entries = append(entries, s.entryLocked(r, t, before, source, i))
	}
	for _, e := range old {
		s.removedLocked(r, t, e)
	}
	t.entries, t.sources = entries, items
	if !t.initialized {
		t.initialized, t.since = true, s.rev
	}
	t.trim()
}

// entryLocked returns the entry of an item: the previous one if the object has not
// changed.
func (s *store) entryLocked(r *resource.Definition, t *resourceState, before *resource.Entry, was, is resource.Item) *resource.Entry {
	if before != nil && same(r, was.Object, is.Object) {
		return before
	}
	if before != nil && before.Object.GetUID() != is.Object.GetUID() {
		s.removedLocked(r, t, before)
		before = nil
	}
	s.rev++
	e := r.Entry(is, s.rev)
	kind := watch.Modified
	if before == nil {
		kind = watch.Added
	}
	t.record(change{kind: kind, now: e, before: before})
	return e
}

// same reports whether an object is unchanged. Events are compared by their
// resourceVersion.
func same(r *resource.Definition, was, is server.Object) bool {
	if r.Events {
		return was.GetResourceVersion() == is.GetResourceVersion()
	}
	return was == is || equality.Semantic.DeepEqual(was, is)
}

// withRevision returns the same object at another revision, for the event of its
// deletion.
func withRevision(r *resource.Definition, e *resource.Entry, rev uint64) *resource.Entry {
	return r.Entry(resource.Item{Key: e.Key, Object: e.Object}, rev)
}

func (s *store) removedLocked(r *resource.Definition, t *resourceState, e *resource.Entry) {
	s.rev++
	t.record(change{kind: watch.Deleted, now: withRevision(r, e, s.rev), before: e})
}

// record retains a change, except for the initial objects.
func (t *resourceState) record(c change) {
	if !t.initialized {
		return
	}
	c.bytes = len(c.now.JSON())
	if c.before != nil {
		c.bytes += len(c.before.JSON())
	}
	t.changes, t.bytes = append(t.changes, c), t.bytes+c.bytes
}

// trim drops the older half of the changes if there are too many.
func (t *resourceState) trim() {
	if len(t.changes) <= 2*maxChanges && t.bytes <= maxChangeBytes {
		return
	}
	rest := t.changes
	for len(rest) > maxChanges || t.bytes > maxChangeBytes/2 && len(rest) > minChanges {
		t.since, t.bytes = rest[0].now.Rev, t.bytes-rest[0].bytes
		rest = rest[1:]
	}
	t.changes = slices.Clone(rest) // lets the garbage collector free the dropped changes
}

// noEvents provides no events.
type noEvents struct{}

// Events implements Events.
func (noEvents) Events(uint64) ([]*v1.Event, uint64) { return nil, 0 }

// Changed implements Events.
func (noEvents) Changed(uint64) <-chan struct{} { return nil }
