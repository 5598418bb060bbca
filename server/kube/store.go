package kube

import (
	"slices"
	"sort"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"

	"podd/server"
)

// Of a resource mostChanges are remembered at least, unless they have more than
// mostBytes, and then some; who is further behind lists again.
const (
	mostChanges   = 512
	mostBytes     = 8 << 20
	fewestChanges = 8 // however large
)

// Events are what happened to objects of this node. It must be safe for
// concurrent use.
type Events interface {
	// Events are those kept that are newer than a revision, each with its own as
	// resourceVersion, and the newest revision there is.
	Events(after uint64) ([]*v1.Event, uint64)
	// Changed is closed once there is a newer revision.
	Changed(after uint64) <-chan struct{}
}

// store remembers what was shown, and since which revision. Revisions begin with
// the View's and grow by one with every change, so that no two changes have the
// same: a watcher that was cut between them would miss the second.
type store struct {
	state  server.Viewer
	events Events

	mu     sync.Mutex // guards all following fields
	rev    uint64
	tables map[*resource]*kept
}

// kept is what a store remembers of a resource. Its slices are shared with who
// reads them: they are appended to and replaced, never overwritten.
type kept struct {
	made    bool
	seen    *server.View    // it was made of
	changed <-chan struct{} // closed once it is outdated
	sources []item          // that entries are of, in the same order
	entries []*entry        // in order of key
	changes []change        // in order of revision
	bytes   int             // of changes
	since   uint64          // all changes later than it are in changes
}

// change is that an object came, went, or is another since the revision of now;
// when it went, now is how it was.
type change struct {
	kind        watch.EventType
	now, before *entry // before is nil when it came
	bytes       int    // that both have, encoded
}

func newStore(state server.Viewer, events Events) *store {
	return &store{state: state, events: events, rev: state.View().Revision, tables: map[*resource]*kept{}}
}

// list is all of a resource, with the revision it is of.
func (s *store) list(r *resource) ([]*entry, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updatedLocked(r).entries, s.rev
}

// after is what changed since a revision, up to which one, and a channel that is
// closed once there may be more. It is not known, says false, of a revision that
// is too old or not yet.
func (s *store) after(r *resource, rev uint64) (changes []change, now uint64, more <-chan struct{}, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.updatedLocked(r)
	first := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].now.rev > rev })
	return t.changes[first:], s.rev, t.changed, t.since <= rev && rev <= s.rev
}

// updatedLocked is the table of a resource, up to date.
func (s *store) updatedLocked(r *resource) *kept {
	t := s.tables[r]
	if t == nil {
		t = &kept{}
		s.tables[r] = t
	}
	if r.events {
		select {
		case <-t.changed:
		default:
			if t.made {
				return t
			}
		}
		events, rev := s.events.Events(0) // those that are kept no more go
		t.changed = s.events.Changed(rev)
		s.updateLocked(r, t, eventItems(events))
		return t
	}
	v := s.state.View()
	s.rev = max(s.rev, v.Revision)
	if t.seen != v {
		t.seen, t.changed = v, s.state.Changed(v.Revision)
		s.updateLocked(r, t, r.items(v))
	}
	return t
}

func eventItems(events []*v1.Event) []item {
	all := make([]item, 0, len(events))
	for _, e := range events {
		all = append(all, item{server.Key{Namespace: e.Namespace, Name: e.Name}, e})
	}
	slices.SortFunc(all, func(a, b item) int { return a.key.Compare(b.key) })
	return all
}

// updateLocked makes t of items, which are in order of key, and notes what is
// another than before. The first time nothing is: nobody knows an earlier state.
func (s *store) updateLocked(r *resource, t *kept, items []item) {
	entries := make([]*entry, 0, len(items))
	old, sources := t.entries, t.sources
	for _, i := range items {
		for len(old) > 0 && old[0].key.Compare(i.key) < 0 {
			s.goneLocked(r, t, old[0])
			old, sources = old[1:], sources[1:]
		}
		var before *entry
		var source item
		if len(old) > 0 && old[0].key == i.key {
			before, source = old[0], sources[0]
			old, sources = old[1:], sources[1:]
		}
		entries = append(entries, s.entryLocked(r, t, before, source, i))
	}
	for _, e := range old {
		s.goneLocked(r, t, e)
	}
	t.entries, t.sources = entries, items
	if !t.made {
		t.made, t.since = true, s.rev
	}
	t.trim()
}

// entryLocked is that of an item: the one before, while it shows the same.
func (s *store) entryLocked(r *resource, t *kept, before *entry, was, is item) *entry {
	if before != nil && r.same(was.object, is.object) {
		return before
	}
	if before != nil && before.object.GetUID() != is.object.GetUID() {
		s.goneLocked(r, t, before)
		before = nil
	}
	s.rev++
	e := r.entry(is, s.rev)
	kind := watch.Modified
	if before == nil {
		kind = watch.Added
	}
	t.note(change{kind: kind, now: e, before: before})
	return e
}

// same says that an object shows nothing else than it did. Events tell it.
func (r *resource) same(was, is server.Object) bool {
	if r.events {
		return was.GetResourceVersion() == is.GetResourceVersion()
	}
	return was == is || equality.Semantic.DeepEqual(was, is)
}

func (s *store) goneLocked(r *resource, t *kept, e *entry) {
	s.rev++
	t.note(change{kind: watch.Deleted, now: e.at(r, s.rev), before: e})
}

// note remembers a change, but for how all came that was there at first.
func (t *kept) note(c change) {
	if !t.made {
		return
	}
	c.bytes = len(c.now.encoded())
	if c.before != nil {
		c.bytes += len(c.before.encoded())
	}
	t.changes, t.bytes = append(t.changes, c), t.bytes+c.bytes
}

// trim forgets the oldest half of the changes, now and then.
func (t *kept) trim() {
	if len(t.changes) <= 2*mostChanges && t.bytes <= mostBytes {
		return
	}
	rest := t.changes
	for len(rest) > mostChanges || t.bytes > mostBytes/2 && len(rest) > fewestChanges {
		t.since, t.bytes = rest[0].now.rev, t.bytes-rest[0].bytes
		rest = rest[1:]
	}
	t.changes = slices.Clone(rest) // frees those before
}

// noEvents is where nothing is told.
type noEvents struct{}

// Events implements Events.
func (noEvents) Events(uint64) ([]*v1.Event, uint64) { return nil, 0 }

// Changed implements Events.
func (noEvents) Changed(uint64) <-chan struct{} { return nil }
