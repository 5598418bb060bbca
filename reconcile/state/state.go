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

// A State is the state of the worker of one pod name. New returns the initial state. A State is
// immutable: a method that changes the state returns a changed copy. Its methods have pointer
// receivers and return pointers, because copies of a State of 2 kB would need deep stacks.
type State struct {
	Key types.NamespacedName
	// PlanInput is the input of the next decision, without JournalError, which the method Input
	// adds.
	PlanInput plan.Input
	// Order is the newest order.
	Order Order
	// Refs and SuccessorRefs contain the objects that PlanInput.Desired and PlanInput.Successor
	// refer to. PreviousRefs contains the previous Refs. Redact needs PreviousRefs, because
	// containers that are being stopped may still use its Secrets. All three may be nil.
	Refs, SuccessorRefs, PreviousRefs *refs.Resolved
	// StartTime is the start time in the pod's status. PlanInput.History.StartTime is the same
	// moment with a monotonic clock reading, for deadlines.
	StartTime time.Time
	// Barrier is the end of the newest observable effect. Observations that were requested
	// before it are dropped.
	Barrier time.Time
	// HasObserved reports whether the runtime was observed at least once.
	HasObserved bool
	// Records contains the newest record of each UID. FailedWrites contains an entry for each
	// UID whose newest record is not on disk.
	Records      map[types.UID]Record
	FailedWrites map[types.UID]FailedWrite
	// UnreadableJournals contains an error for each UID with a journal that cannot be read, until
	// the journal is replaced.
	UnreadableJournals map[types.UID]string
	// ReportedDecision is the last decision that was reported, and DecisionSince is the time at
	// which its rule began to apply.
	ReportedDecision plan.Decision
	DecisionSince    time.Time

	// versionWithoutEphemeral is PlanInput.Desired as the router sent it, without the ephemeral
	// containers that podd added.
	versionWithoutEphemeral *manifest.Pod
	isEndReported           bool         // the result of IsEndRecorded in the last report
	hasRecordedStart        bool         // whether PlanInput.History.StartTime is from a journal
	hasDir                  bool         // whether a pod directory with the UID of Order.Desired is on disk
	hasLostExits            bool         // whether recordLostExits has recorded an exit since the last PrepareDecision
	pendingEnd              *plan.PodEnd // how the pod ended, until this is written to the journal; nil if no end is to be written
	// replacedVersion is the version that was in force before PlanInput.Desired. It is nil if the
	// runtime lists no incarnation of another version. Redact needs replacedVersion, because an
	// error about such an incarnation may quote private values of its version.
	replacedVersion *manifest.Pod
	// publishedPod is the pod that PodWithStatus last returned. Its spec is from publishedVersion.
	publishedPod     *v1.Pod
	publishedVersion *manifest.Pod
}

// Outputs contains the operations that the caller must carry out, in the order of the fields, after
// it has replaced a State. The zero value requires nothing.
type Outputs struct {
	// Writes contains the journals to write, at most one for each UID. The result of each
	// write must be passed to State.ApplyWrite.
	Writes []Write
	// AcceptedObservation reports whether an observation was applied. An observation that is out of
	// date is not applied.
	AcceptedObservation bool
	// RequestedObservation is the urgency with which an observation of the pod must be requested.
	RequestedObservation Urgency
	Events               []event.Event
	LogRecords           []LogRecord
	// NeedsReport reports whether the change requires a new report.
	NeedsReport bool
}

// A Write is a journal to write. Durable reports whether it must survive a power cut.
type Write struct {
	Record  Record
	Durable bool
}

// An Urgency is the urgency with which an observation of the pod is requested.
type Urgency int

// The urgencies, in ascending order. ObserveNotRequested means that no observation is requested.
// ObserveSoon allows a delay, and ObserveAtOnce does not.
const (
	ObserveNotRequested Urgency = iota
	ObserveSoon
	ObserveAtOnce
)

// A LogRecord is a record that the caller must log.
type LogRecord struct {
	IsWarning bool // whether the level is warning; otherwise it is info
	Message   string
	Args      []any // keys and values, as for slog
}

// LateCallTimeout is the maximum time for which a runtime continues a call after the call was
// canceled or the caller has exited. Usually the runtime cancels the call at once, but under load it
// may need seconds.
const LateCallTimeout = 10 * time.Second

// InitialFacts contains the facts about a pod name from which New creates a State.
type InitialFacts struct {
	Key types.NamespacedName
	// PastRecords contains the records of the name that an earlier podd wrote.
	PastRecords []Record
	// LateCallsUntil is the time until which a call of the earlier podd may still create a sandbox.
	// It is ignored for pods that have finished or are being stopped.
	LateCallsUntil time.Time
	// UnreadableJournals contains an error for each UID with a journal that cannot be read.
	UnreadableJournals map[types.UID]string
	// Barrier is the time at which the last effect of an earlier worker of this name ended.
	Barrier time.Time
}

// New returns the initial state of a worker.
func New(start InitialFacts) *State {
	s := &State{Key: start.Key, Records: map[types.UID]Record{}, UnreadableJournals: start.UnreadableJournals, Barrier: start.Barrier}
	for _, r := range start.PastRecords {
		s.Records[r.UID] = r
		dir := plan.PodDir{UID: r.UID, Hash: r.Hash, MayHaveVolumes: r.HasVolumes, KeepUntil: start.LateCallsUntil}
		if r.Stopping != nil {
			s.PlanInput.History.Stopping = r.Stopping
		}
		for id, e := range r.Terminations {
			s.PlanInput.History.Terminations = withKey(s.PlanInput.History.Terminations, id, e)
		}
		if r.Stopping != nil || r.Finished != nil {
			dir.KeepUntil = time.Time{}
		}
		s.PlanInput.PodDirs = append(s.PlanInput.PodDirs, dir)
	}
	return s
}

// A transition is the change of a State by one function, with the outputs that it has added so far.
// now is the time of the change.
type transition struct {
	*State
	outputs Outputs
	now     time.Time
}

// begin returns a transition from s. The transition changes a copy of s.
func (s *State) begin(now time.Time) *transition { return &transition{State: s.clone(), now: now} }

// clone returns a shallow copy of s.
func (s *State) clone() *State {
	copied := *s
	return &copied
}

// end returns the changed state and the outputs.
func (t *transition) end() (*State, Outputs) { return t.State, t.outputs }

// requestObservation requests an observation with urgency u, unless the outputs already contain a
// more urgent request.
func (t *transition) requestObservation(u Urgency) {
	t.outputs.RequestedObservation = max(t.outputs.RequestedObservation, u)
}

// info adds a log record at level info.
func (t *transition) info(message string, args ...any) {
	t.outputs.LogRecords = append(t.outputs.LogRecords, LogRecord{Message: message, Args: args})
}

// warn adds a log record at level warning.
func (t *transition) warn(message string, args ...any) {
	t.outputs.LogRecords = append(t.outputs.LogRecords, LogRecord{IsWarning: true, Message: message, Args: args})
}

func (t *transition) addEvents(events ...event.Event) {
	t.outputs.Events = append(t.outputs.Events, events...)
}

// changeContainer applies change to the history of the container with this name.
func (t *transition) changeContainer(name string, change func(*plan.ContainerHistory)) {
	h := t.PlanInput.History.Containers[name]
	change(&h)
	t.PlanInput.History.Containers = withKey(t.PlanInput.History.Containers, name, h)
}

// ShiftTimes returns s with d added to all times from which durations are measured. It is called
// after a suspension of the host, during which the monotonic clock did not advance. d is then the
// negative duration of the suspension.
func (s *State) ShiftTimes(d time.Duration) *State {
	shift := func(_ string, t time.Time) time.Time { return t.Add(d) }
	newState := s.clone()
	h := &newState.PlanInput.History
	times := Record{MonotonicStartTime: h.StartTime, Finished: h.Finished, Stopping: h.Stopping, Terminations: h.Terminations}
	times.replaceTimes(shift)
	h.StartTime, h.Finished, h.Stopping, h.Terminations = times.MonotonicStartTime, times.Finished, times.Stopping, times.Terminations
	for uid, r := range s.Records {
		r.replaceTimes(shift)
		newState.Records = withKey(newState.Records, uid, r)
	}
	return newState
}

// UIDs returns the UIDs of PlanInput.PodDirs. These include the UIDs of all sandboxes of podd,
// because addDirs adds a directory for each of them.
func (s *State) UIDs() []types.UID {
	uids := make([]types.UID, 0, len(s.PlanInput.PodDirs))
	for _, dir := range s.PlanInput.PodDirs {
		uids = append(uids, dir.UID)
	}
	return uids
}

// dir returns the element of PlanInput.PodDirs with this UID. If there is none, it returns a
// PodDir that contains only uid.
func (s *State) dir(uid types.UID) plan.PodDir {
	for _, d := range s.PlanInput.PodDirs {
		if d.UID == uid {
			return d
		}
	}
	return plan.PodDir{UID: uid}
}

// withKey returns a copy of m in which k has the value v. Maps in a State are never modified,
// because decisions and effects read them.
func withKey[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	copied := make(map[K]V, len(m)+1)
	maps.Copy(copied, m)
	copied[k] = v
	return copied
}

// withoutKey returns a copy of m without k, or m itself if it does not contain k.
func withoutKey[K comparable, V any](m map[K]V, k K) map[K]V {
	if _, ok := m[k]; !ok {
		return m
	}
	copied := maps.Clone(m)
	delete(copied, k)
	return copied
}

// EqualVersion reports whether a and b are the same version of a pod, so that b can run in the
// sandbox of a. The sizes of their containers may differ.
func EqualVersion(a, b *manifest.Pod) bool { return a.UID == b.UID && a.Hash == b.Hash }

// EqualSize reports whether a and b are the same version of a pod with equal sizes. They must have
// the same containers, and the sizes of the pod and of each container must be equal.
func EqualSize(a, b *manifest.Pod) bool {
	return a == b || EqualVersion(a, b) && maps.Equal(a.ContainerHashes, b.ContainerHashes) && a.PodSize() == b.PodSize()
}
