// Package events stores the Kubernetes events of pods and of the node. As in client-go, a repeated
// event is stored once with a count, and many events that differ only in their messages are
// combined.
//
//	Occurrence ─▶ Log.Add ─▶ series (object, type, reason, container, message) ─▶ v1.Event
//
// A Log stores events only in memory. Both the total number of events and the number per object are
// limited. The cost of adding an event does not depend on the number of events. Every new event and
// every repetition has a revision, which clients use to follow the log: Events(after) returns the
// retained events with a greater revision, and Changed(after) reports when there are more. If an
// event is dropped because of a limit, clients are not notified. An API server does not notify
// clients of expired events either.
package events

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Occurrence is one occurrence of an event.
type Occurrence struct {
	Type      string // v1.EventTypeNormal or v1.EventTypeWarning
	Reason    string
	Message   string
	Pod       types.NamespacedName // zero if the event is about the node
	UID       types.UID            // UID of the pod
	FieldPath string               // path of the container, such as "spec.containers{web}"
	Time      time.Time
	// Annotations are the annotations of the event, which must not be modified; may be nil.
	Annotations map[string]string
}

// Options configure a Log.
type Options struct {
	Node string // name of the node
	// FirstRevision is the initial revision. It must be greater than all revisions that an earlier
	// process used.
	FirstRevision uint64
	// MaxEvents limits the number of retained events; 0 means 1,000. MaxEventsPerObject
	// limits the number of retained events of an object; 0 means 100.
	MaxEvents, MaxEventsPerObject int
}

// If maxSimilar events of an object differ only in their messages, further events of this kind are
// combined. Events that are older than maxSimilarAge are not counted. The numbers are those of the
// kubelet.
const (
	maxSimilar    = 10
	maxSimilarAge = 10 * time.Minute
)

// combinedPrefix begins the message of a combined event, as in client-go.
const combinedPrefix = "(combined from similar events): "

// Log retains events. It is safe for concurrent use.
type Log struct {
	o Options

	mu                sync.Mutex // guards all following fields
	revision          uint64
	lastNameTimestamp int64                       // timestamp in the newest event's name, in nanoseconds
	allSeries         *list.List                  // elements are *series, the newest last
	objects           map[objectKey]*objectSeries // events of each object
	changed           chan struct{}               // closed at the next Add; nil if no client waits
}

type objectKey struct {
	pod types.NamespacedName
	uid types.UID
}

// An objectSeries contains the events of one object.
type objectSeries struct {
	allSeries *list.List // elements are *series, the newest last
	similar   map[similarityKey][]*series
}

// A similarityKey is the same for all events of an object that differ only in their messages.
type similarityKey struct{ eventType, reason, field string }

// A series is an event and its repetitions.
type series struct {
	Occurrence                // newest occurrence
	firstTime                 time.Time
	count                     int32
	isCombined                bool
	nameTimestamp             int64         // timestamp in the name of the event, in nanoseconds
	revision                  uint64        // revision of the newest occurrence
	allElement, objectElement *list.Element // elements of Log.allSeries and objectSeries.allSeries
}

// New returns an empty Log.
func New(o Options) *Log {
	if o.MaxEvents == 0 {
		o.MaxEvents = 1000
	}
	if o.MaxEventsPerObject == 0 {
		o.MaxEventsPerObject = 100
	}
	return &Log{o: o, revision: o.FirstRevision, allSeries: list.New(), objects: map[objectKey]*objectSeries{}}
}

// Add records events in the given order.
func (l *Log) Add(occurrences ...Occurrence) {
	if len(occurrences) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range occurrences {
		l.addLocked(n)
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *Log) addLocked(n Occurrence) {
	s := l.findOrAddSeriesLocked(n)
	if s.isCombined {
		n.Message = combinedPrefix + n.Message
	}
	if n.Time.Before(s.Time) {
		n.Time = s.Time // a concurrent caller may have added a newer occurrence first
	}
	l.revision++
	s.Occurrence, s.revision = n, l.revision
	if s.count < 1<<31-1 {
		s.count++
	}
}

// findOrAddSeriesLocked returns the series that n belongs to and makes it the newest series. It
// creates the series if necessary, and drops old series if a limit is reached.
func (l *Log) findOrAddSeriesLocked(n Occurrence) *series {
	key := objectKey{n.Pod, n.UID}
	b := l.objects[key]
	if b == nil {
		b = &objectSeries{allSeries: list.New(), similar: map[similarityKey][]*series{}}
		l.objects[key] = b
	}
	s, droppable := findSeries(b.similar[similarityOf(n)], n)
	if s != nil {
		l.allSeries.MoveToBack(s.allElement)
		b.allSeries.MoveToBack(s.objectElement)
		return s
	}
	if droppable != nil {
		l.dropLocked(droppable)
	}
	if b.allSeries.Len() >= l.o.MaxEventsPerObject {
		l.dropLocked(b.allSeries.Front().Value.(*series))
	}
	if l.allSeries.Len() >= l.o.MaxEvents {
		l.dropLocked(l.allSeries.Front().Value.(*series))
	}
	l.objects[key] = b // add the object again, because dropLocked removes an object with its last series
	l.lastNameTimestamp = max(l.lastNameTimestamp+1, n.Time.UnixNano())
	s = &series{Occurrence: n, firstTime: n.Time, nameTimestamp: l.lastNameTimestamp, isCombined: droppable == nil && len(b.similar[similarityOf(n)]) >= maxSimilar}
	s.allElement, s.objectElement = l.allSeries.PushBack(s), b.allSeries.PushBack(s)
	b.similar[similarityOf(n)] = append(b.similar[similarityOf(n)], s)
	return s
}

// findSeries searches the list similar for the series to which the occurrence n belongs. This is
// the series with the same message or, if there are maxSimilar other series, the combined series.
// If found is nil, n needs a new series. If droppable is not nil, this series must be dropped
// first.
func findSeries(similar []*series, n Occurrence) (found, droppable *series) {
	var combined *series
	for _, other := range similar {
		switch {
		case other.isCombined:
			combined = other
		case other.Message == n.Message:
			return other, nil
		}
		if n.Time.Sub(other.Time) > maxSimilarAge && (droppable == nil || other.Time.Before(droppable.Time)) {
			droppable = other
		}
	}
	if len(similar) < maxSimilar {
		return nil, nil
	}
	if droppable != nil {
		return nil, droppable
	}
	return combined, nil
}

func similarityOf(n Occurrence) similarityKey { return similarityKey{n.Type, n.Reason, n.FieldPath} }

func (l *Log) dropLocked(s *series) {
	key := objectKey{s.Pod, s.UID}
	b := l.objects[key]
	l.allSeries.Remove(s.allElement)
	b.allSeries.Remove(s.objectElement)
	var others []*series
	for _, other := range b.similar[similarityOf(s.Occurrence)] {
		if other != s {
			others = append(others, other)
		}
	}
	if b.similar[similarityOf(s.Occurrence)] = others; others == nil {
		delete(b.similar, similarityOf(s.Occurrence))
	}
	if b.allSeries.Len() == 0 {
		delete(l.objects, key)
	}
}

// Changed returns a channel that is closed when the newest revision is greater than afterRevision.
// If afterRevision is not the newest revision, the channel is already closed.
func (l *Log) Changed(afterRevision uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revision != afterRevision {
		return closedChannel
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
