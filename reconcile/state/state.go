package state

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// A State is the memory of the worker of one pod name. New returns the first one.
type State struct {
	Key types.NamespacedName
	// In is the input of the next decision.
	In plan.Input
	// Order is the newest one.
	Order Order
	// Refs and NextRefs are the objects of In.Desired and In.Successor. FormerRefs are the
	// previous Refs, because containers that are being stopped still have their Secrets. All
	// may be nil.
	Refs, NextRefs, FormerRefs *refs.Resolved
	// StartTime is the start time in the pod's status, by the wall clock of that moment.
	// History.StartTime is the same moment, for waits.
	StartTime time.Time
	// Barrier is the end of the newest observable effect.
	Barrier time.Time
	// HasObserved reports whether the runtime was observed at least once.
	HasObserved bool
	// Records contains the newest record of each UID. FailedWrites contains an entry for each
	// UID whose newest record is not on disk.
	Records      map[types.UID]Record
	FailedWrites map[types.UID]FailedWrite
	// Unreadable is why a journal that is not replaced yet cannot be read.
	Unreadable map[types.UID]string
	// Reported is the last decision that was reported, and Since the time at which its rule
	// began to match.
	Reported plan.Decision
	Since    time.Time

	// withoutEphemeral is In.Desired as the router sent it, without the ephemeral containers
	// that podd added.
	withoutEphemeral *manifest.Pod
	hasRecordedStart bool           // History.StartTime is from a journal that existed before In.Desired was set
	hasDir           bool           // the UID of Order.Desired has a directory on disk
	exitsLost        bool           // whether recordLost has recorded an exit since the last PrepareDecision
	finishing        *plan.Finished // the end of the pod that waits for the journal; nil if there is none
	// replaced is the version that was in force before In.Desired, while the runtime lists
	// incarnations of another version: errors about these may quote its private values.
	replaced *manifest.Pod
	// published is the last object reported. It was made from publishedFrom.
	published     *v1.Pod
	publishedFrom *manifest.Pod
}

// Outputs are what the caller of a function on a State must carry out, in the order of the
// fields. The zero value is nothing.
type Outputs struct {
	// Writes are the journals to write before anything else, at most one for each UID. The
	// result of each must be passed to State.Written.
	Writes []Write
	// Confirmed reports whether an observation was accepted.
	Confirmed bool
	// Request is the observation that is required.
	Request Request
	Events  []event.Event
	Notes   []Note
	// News reports whether the state changed in a way that a report shows.
	News bool
}

// A Write is a journal to write. Durable reports whether it must survive a power cut.
type Write struct {
	Record  Record
	Durable bool
}

// A Request is a request for an observation of the pod.
type Request int

// NoRequest, Soon and Urgent order requests by their urgency.
const (
	NoRequest Request = iota
	Soon
	Urgent
)

// A Note is a log record.
type Note struct {
	Warning bool
	Message string
	Args    []any // keys and values, as for slog
}

// Start is what is known about a pod name when its worker starts.
type Start struct {
	Key types.NamespacedName
	// Past has the records of the name that an earlier podd wrote. Until Late, a call of
	// that podd may still create something. That does not apply to pods that had ended or
	// were being stopped.
	Past []Record
	Late time.Time
	// Unreadable has the UIDs with a journal that cannot be read, and the reasons.
	Unreadable map[types.UID]string
	// Barrier is the end of the last effect of an earlier worker of the name.
	Barrier time.Time
}

// New returns the state of a worker that starts.
func New(start Start) State {
	s := State{Key: start.Key, Records: map[types.UID]Record{}, Unreadable: start.Unreadable, Barrier: start.Barrier}
	for _, r := range start.Past {
		s.Records[r.UID] = r
		dir := plan.Dir{UID: r.UID, Hash: r.Hash, Volumes: r.Volumes, Keep: start.Late}
		if r.Stopping != nil {
			s.In.History.Stopping = r.Stopping
		}
		for id, e := range r.Terminations {
			s.In.History.Terminations = with(s.In.History.Terminations, id, e)
		}
		if r.Stopping != nil || r.Finished != nil {
			dir.Keep = time.Time{}
		}
		s.In.Dirs = append(s.In.Dirs, dir)
	}
	return s
}

// transition is a State that is being changed, with the outputs so far.
type transition struct {
	State
	out Outputs
	now time.Time
}

func (s State) begin(now time.Time) *transition { return &transition{State: s, now: now} }

func (t *transition) end() (State, Outputs) { return t.State, t.out }

// request requests an observation.
func (t *transition) request(r Request) { t.out.Request = max(t.out.Request, r) }

func (t *transition) info(message string, args ...any) {
	t.out.Notes = append(t.out.Notes, Note{Message: message, Args: args})
}

func (t *transition) warn(message string, args ...any) {
	t.out.Notes = append(t.out.Notes, Note{Warning: true, Message: message, Args: args})
}

func (t *transition) addEvents(events ...event.Event) { t.out.Events = append(t.out.Events, events...) }

// container changes the history of a container.
func (t *transition) container(name string, change func(*plan.ContainerHistory)) {
	h := t.In.History.Containers[name]
	change(&h)
	t.In.History.Containers = with(t.In.History.Containers, name, h)
}

// Shift moves all times by d, because the clock that they were read from moved by -d: the
// host was suspended.
func (s State) Shift(d time.Duration) State {
	move := func(_ string, t time.Time) time.Time { return t.Add(d) }
	h := &s.In.History
	present := Record{Started: h.StartTime, Finished: h.Finished, Stopping: h.Stopping, Terminations: h.Terminations}
	present.eachMoment(move)
	h.StartTime, h.Finished, h.Stopping, h.Terminations = present.Started, present.Finished, present.Stopping, present.Terminations
	for uid, r := range s.Records {
		r.eachMoment(move)
		s.Records = with(s.Records, uid, r)
	}
	return s
}

// UIDs returns the UIDs of the pod's own incarnations and of their directories.
func (s State) UIDs() []types.UID {
	uids := make([]types.UID, 0, len(s.In.Dirs))
	for _, dir := range s.In.Dirs {
		uids = append(uids, dir.UID) // every incarnation of ours has one
	}
	return uids
}

// dir returns the record of the directory of a UID.
func (s State) dir(uid types.UID) plan.Dir {
	for _, d := range s.In.Dirs {
		if d.UID == uid {
			return d
		}
	}
	return plan.Dir{UID: uid}
}

// with returns a copy of m in which k has the value v. A map that a decision or an effect
// reads is never modified.
func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	out := make(map[K]V, len(m)+1)
	maps.Copy(out, m)
	out[k] = v
	return out
}

// without returns a copy of m without k.
func without[K comparable, V any](m map[K]V, k K) map[K]V {
	if _, has := m[k]; !has {
		return m
	}
	out := maps.Clone(m)
	delete(out, k)
	return out
}

// EqualVersion reports whether a and b are the same version of a pod, so that b can run in the
// sandbox of a. The sizes of their containers may differ.
func EqualVersion(a, b *manifest.Pod) bool { return a.UID == b.UID && a.Hash == b.Hash }

// EqualSize reports whether a and b are the same version of a pod and their containers have
// equal sizes.
func EqualSize(a, b *manifest.Pod) bool {
	return EqualVersion(a, b) && maps.Equal(a.Containers, b.Containers)
}
