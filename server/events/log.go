// Package events keeps what happened to pods and to the node, as an apiserver
// and its clients would: what repeats is one event with a count, and what only
// sounds a little different each time becomes one, too.
//
//	Note ─▶ Log.Add ─▶ series (object, type, reason, container, message) ─▶ v1.Event
//
// A Log is in memory and bounded, over all and for each object, whatever goes on;
// adding costs the same however much is kept. Every new event and every repetition
// has a revision, by which others follow: Events(after) is all that is kept of what
// is newer, and Changed(after) tells when there is more. What was dropped to stay
// within the bounds is told to nobody, as it is with events that expired.
package events

import (
	"container/list"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Note is one thing that happened.
type Note struct {
	Type    string // v1.EventTypeNormal or v1.EventTypeWarning
	Reason  string
	Message string
	Pod     types.NamespacedName // zero: the node
	UID     types.UID            // of the pod
	Field   string               // of the container, as "spec.containers{web}"
	Time    time.Time
}

// Options say whose events a Log keeps, and how many.
type Options struct {
	Node string // its name
	// First is the revision to begin after: later than any of an earlier life.
	First uint64
	// Most is how many events are kept, MostEach how many of one object; 0 means
	// 1,000 and 100.
	Most, MostEach int
}

// mostAlike is how many events of one object, container and reason may differ in
// their messages before the next ones count as one, and alikeFor how long they are
// remembered for that; a kubelet's numbers.
const (
	mostAlike = 10
	alikeFor  = 10 * time.Minute
)

// combinedPrefix begins the message of an event that stands for many.
const combinedPrefix = "(combined from similar events): "

// Log keeps events. Safe for concurrent use.
type Log struct {
	o Options

	mu       sync.Mutex // guards all following fields
	revision uint64
	stamp    int64              // that of the newest name
	all      *list.List         // of *series, the newest last
	objects  map[object]*bucket // of those in all
	totals   map[Kind]uint64
	outdated chan struct{} // closed at the next Add; nil: nobody waits
}

// Kind is what a total is of.
type Kind struct{ Type, Reason string }

type object struct {
	pod types.NamespacedName
	uid types.UID
}

// bucket has the events of one object.
type bucket struct {
	all   *list.List // of *series, the newest last
	alike map[likeness][]*series
}

// likeness is what events have in common that differ in their messages.
type likeness struct{ kind, reason, field string }

// series is an event and its repetitions.
type series struct {
	Note            // the last of them
	first           time.Time
	count           int32
	combined        bool
	stamp           int64
	revision        uint64
	inAll, inObject *list.Element
}

// New returns an empty Log.
func New(o Options) *Log {
	if o.Most == 0 {
		o.Most = 1000
	}
	if o.MostEach == 0 {
		o.MostEach = 100
	}
	return &Log{o: o, revision: o.First, all: list.New(), objects: map[object]*bucket{}, totals: map[Kind]uint64{}}
}

// Add takes what happened, in its order.
func (l *Log) Add(notes ...Note) {
	if len(notes) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range notes {
		l.addLocked(n)
	}
	if l.outdated != nil {
		close(l.outdated)
		l.outdated = nil
	}
}

func (l *Log) addLocked(n Note) {
	l.totals[Kind{n.Type, n.Reason}]++
	s := l.seriesLocked(n)
	if s.combined {
		n.Message = combinedPrefix + n.Message
	}
	if n.Time.Before(s.Time) {
		n.Time = s.Time // two tell of what they did at once
	}
	l.revision++
	s.Note, s.revision = n, l.revision
	if s.count < 1<<31-1 {
		s.count++
	}
}

// seriesLocked is the one that a note belongs to, as the newest of all.
func (l *Log) seriesLocked(n Note) *series {
	key := object{n.Pod, n.UID}
	b := l.objects[key]
	if b == nil {
		b = &bucket{all: list.New(), alike: map[likeness][]*series{}}
		l.objects[key] = b
	}
	s, old := choose(b.alike[likenessOf(n)], n)
	if s != nil {
		l.all.MoveToBack(s.inAll)
		b.all.MoveToBack(s.inObject)
		return s
	}
	if old != nil {
		l.dropLocked(old)
	}
	if b.all.Len() >= l.o.MostEach {
		l.dropLocked(b.all.Front().Value.(*series))
	}
	if l.all.Len() >= l.o.Most {
		l.dropLocked(l.all.Front().Value.(*series))
	}
	l.objects[key] = b // what was dropped may have been its last
	l.stamp = max(l.stamp+1, n.Time.UnixNano())
	s = &series{Note: n, first: n.Time, stamp: l.stamp, combined: old == nil && len(b.alike[likenessOf(n)]) >= mostAlike}
	s.inAll, s.inObject = l.all.PushBack(s), b.all.PushBack(s)
	b.alike[likenessOf(n)] = append(b.alike[likenessOf(n)], s)
	return s
}

// choose finds what a note repeats: its own words or, when there are many others,
// what stands for all. With neither, old is one that makes room.
func choose(alike []*series, n Note) (s, old *series) {
	var combined *series
	for _, have := range alike {
		switch {
		case have.combined:
			combined = have
		case have.Message == n.Message:
			return have, nil
		}
		if n.Time.Sub(have.Time) > alikeFor && (old == nil || have.Time.Before(old.Time)) {
			old = have
		}
	}
	if len(alike) < mostAlike {
		return nil, nil
	}
	if old != nil {
		return nil, old
	}
	return combined, nil
}

func likenessOf(n Note) likeness { return likeness{n.Type, n.Reason, n.Field} }

func (l *Log) dropLocked(s *series) {
	key := object{s.Pod, s.UID}
	b := l.objects[key]
	l.all.Remove(s.inAll)
	b.all.Remove(s.inObject)
	var rest []*series
	for _, have := range b.alike[likenessOf(s.Note)] {
		if have != s {
			rest = append(rest, have)
		}
	}
	if b.alike[likenessOf(s.Note)] = rest; rest == nil {
		delete(b.alike, likenessOf(s.Note))
	}
	if b.all.Len() == 0 {
		delete(l.objects, key)
	}
}

// Changed is closed once there is a newer revision than after; already where after
// is another than the newest.
func (l *Log) Changed(after uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revision != after {
		return closed
	}
	if l.outdated == nil {
		l.outdated = make(chan struct{})
	}
	return l.outdated
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Totals are how often each kind of thing happened, also what is kept no more.
func (l *Log) Totals() map[Kind]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.totals)
}
