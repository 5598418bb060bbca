package state

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/device/allocation"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// An Order contains the desired version of a pod name, its verdict and the facts about the node at
// one moment. The router sends it to the worker of the name. A newer order replaces an older order.
// An order that is equal (==) to the previous order need not be sent.
type Order struct {
	// Desired is the desired version; nil if there is none. Refs contains the objects that
	// Desired refers to.
	Desired *manifest.Pod
	Refs    *refs.Resolved
	// Earlier is the version in force if it differs from Desired, and EarlierRefs contains the
	// objects that Earlier refers to. Both may be nil.
	Earlier     *manifest.Pod
	EarlierRefs *refs.Resolved
	// SourcesRead, ForceStop, StopAllReason and Deletion are copied to the fields of plan.Input
	// with these names. SourcesRead is false if Desired is set.
	SourcesRead   bool
	ForceStop     bool
	StopAllReason string
	Deletion      *plan.Deletion
	Verdict       plan.Verdict
	Node          plan.Node
	// TerminatingPod is the pod of this name that its source is deleting; nil if there is none.
	TerminatingPod *manifest.Pod
	RuntimeName    string
	RenderNode     *render.Node
	// UserIDs are the host's user IDs for the user namespace of a new sandbox; zero if the name needs
	// no user namespace, or if no IDs are free.
	UserIDs runtime.IDRange
	// DriverChanges is the number of changes of the volume drivers. If it changes, failed
	// operations on volumes are retried at once.
	DriverChanges uint64
	// UnhealthyDevices are the unhealthy devices of the node; nil if there is no device plugin.
	UnhealthyDevices *allocation.UnhealthyDevices
}

// Requests are sent to a worker in addition to an Order. Each request is carried out once.
type Requests struct {
	Observation         *Observation   // nil means no observation
	Eviction            *plan.Eviction // nil means no eviction
	ContainersToRestart []string       // containers to restart; "" means all
	Reread              *JournalReread // nil means that no journal was read again
}

// MergeUnread returns r combined with the older requests in unread, which the worker has not read.
// If both contain a request of the same kind, the request in r applies. The restarts of both are
// combined.
func (r Requests) MergeUnread(unread Requests) Requests {
	r.ContainersToRestart = append(append([]string(nil), unread.ContainersToRestart...), r.ContainersToRestart...)
	if r.Eviction == nil {
		r.Eviction = unread.Eviction
	}
	if r.Reread == nil {
		r.Reread = unread.Reread
	}
	if u := unread.Observation; u != nil {
		if r.Observation == nil {
			r.Observation = u
		} else if u.IsStale {
			o := *r.Observation
			o.IsStale = true
			r.Observation = &o
		}
	}
	return r
}

// An Observation is the pod as the runtime listed it at one moment.
type Observation struct {
	Pod  *runtime.Pod // nil if the runtime has no pod of this name
	AsOf time.Time
	// IsStale reports whether the observation is older than the first order for the pod. If it is
	// true, no sandbox is created before a newer observation.
	IsStale bool
}

// A JournalReread is the result of a second attempt to read a journal that could not be read before.
type JournalReread struct {
	UID    types.UID
	Record *Record // nil if a user removed the journal
}

// ApplyOrder applies an order and requests. hasDir reports whether a pod directory with the UID
// of o.Desired is on disk.
func (s *State) ApplyOrder(o Order, r Requests, hasDir bool, now time.Time) (*State, Outputs) {
	t := s.begin(now)
	if o.DriverChanges != t.Order.DriverChanges {
		t.retryVolumes()
		t.retryCleanup()
	}
	oldEviction := t.TerminatingEviction()
	t.Order, t.hasDir = o, hasDir
	t.setDesired(o.Desired)
	t.applyRefs()
	if obs := r.Observation; obs != nil {
		t.applyObservation(obs.Pod, obs.AsOf)
		if obs.IsStale {
			t.blockUntilObserved()
		}
	}
	if o.Verdict.Answer == plan.Admit && t.waitsForAdmission() {
		t.resetStartTime()
	}
	t.PlanInput.SourcesRead, t.PlanInput.Verdict, t.PlanInput.Node, t.PlanInput.ForceStop, t.PlanInput.Deletion = o.SourcesRead, o.Verdict, o.Node, o.ForceStop, o.Deletion
	t.PlanInput.StopAllReason = o.StopAllReason
	if e := t.TerminatingEviction(); e != nil && e != oldEviction {
		t.addEvents(event.ForEviction(event.NewSubject(t.publishedVersion, t.now), e))
	}
	t.PlanInput.Node.RuntimeReachable = o.Node.RuntimeReachable && t.HasObserved
	if e := r.Eviction; e != nil && (e.Reason != plan.ReasonTerminated || o.Node.ShuttingDown) {
		t.PlanInput.Eviction = e
	}
	if r.Reread != nil {
		t.applyReread(*r.Reread)
	}
	for _, name := range r.ContainersToRestart {
		t.requestRestart(name)
	}
	t.recordStartTime()
	t.outputs.NeedsReport = true
	return t.end()
}

// waitsForAdmission reports whether the pod was not admitted yet and has no sandbox. The start time
// of such a pod is reset when the pod is admitted.
func (t *transition) waitsForAdmission() bool {
	return t.PlanInput.Verdict.Answer != plan.Admit && t.HasObserved && len(t.PlanInput.Observed) == 0 && !t.hasRecordedStart
}

// recordStartTime writes the journal of an admitted pod with a deadline and without a sandbox,
// unless the journal already contains the start time. Otherwise, the journal would first be written
// when the volumes are prepared, which may be much later. If podd was restarted before that, it
// would know the start time only by the wall clock, or not at all.
func (t *transition) recordStartTime() {
	p := t.PlanInput.Desired
	if p == nil || p.Object.Spec.ActiveDeadlineSeconds == nil || p.HasFinishedAtSource() || t.Order.Desired == nil || !EqualVersion(p, t.Order.Desired) {
		return
	}
	if !t.HasObserved || len(t.PlanInput.Observed) > 0 || t.PlanInput.Verdict.Answer != plan.Admit || t.PlanInput.History.Finished != nil || t.UnreadableJournals[p.UID] != "" || t.isRemoving(p.UID) {
		return
	}
	if hash := t.dir(p.UID).Hash; hash != "" && hash != p.Hash {
		return // the directory of an earlier version must be removed before a journal is written
	}
	if r, ok := t.Records[p.UID]; !ok || r.Hash != p.Hash || !r.MonotonicStartTime.Equal(t.PlanInput.History.StartTime) {
		t.addWrite(p.UID, p.Hash)
	}
}

// setDesired applies p, the desired version in a new order, which is nil if no version is desired.
// If there is no version in force, or if p equals it, p becomes the version in force at once.
// Otherwise p becomes PlanInput.Successor.
func (t *transition) setDesired(p *manifest.Pod) {
	switch {
	case p == nil:
		t.retainManifest()
		t.PlanInput.Desired, t.PlanInput.Successor = nil, nil
		if p := t.Order.TerminatingPod; p != nil && (t.PlanInput.Previous == nil || EqualVersion(p, t.PlanInput.Previous)) {
			t.PlanInput.Previous = p
		}
	case t.PlanInput.Desired == nil:
		t.setVersion(p)
	case EqualVersion(p, t.PlanInput.Desired):
		p = t.withEphemeral(p)
		t.retryResize(p)
		t.PlanInput.Desired, t.PlanInput.Successor = p, nil
	case !t.HasObserved && p.Hash == t.PlanInput.Desired.Hash: // p has another UID on this node, but no action was started yet, so p can replace the version in force
		t.setVersion(p)
	default:
		t.PlanInput.Successor = p
	}
}

// retainManifest stores the version in force in t.replacedVersion before another version replaces
// it. If the version runs, retainManifest also stores it in PlanInput.Previous.
func (t *transition) retainManifest() {
	if t.PlanInput.Desired != nil {
		t.replacedVersion = t.PlanInput.Desired
	}
	if IsRunning(t.PlanInput.Observed, t.PlanInput.Desired) {
		t.PlanInput.Previous = t.PlanInput.Desired
	}
}

// setVersion makes p the version in force. The history of p is restored from the record of p, if
// there is one.
func (t *transition) setVersion(p *manifest.Pod) {
	t.retainManifest()
	t.resetStartTime()
	t.pendingEnd = nil
	oldHistory := t.PlanInput.History
	h := plan.History{Stopping: oldHistory.Stopping, Terminations: oldHistory.Terminations, ReleasedSandboxes: oldHistory.ReleasedSandboxes, Kills: oldHistory.Kills, CleanupFailures: oldHistory.CleanupFailures, VolumeCheck: oldHistory.VolumeCheck, ProbeStates: oldHistory.ProbeStates, StartTime: oldHistory.StartTime}
	if t.PlanInput.Desired != nil && t.PlanInput.Desired.UID == p.UID {
		h.SandboxAttempt = oldHistory.SandboxAttempt
	}
	h.Containers = map[string]plan.ContainerHistory{}
	for name, img := range oldHistory.SuccessorImages {
		h.Containers[name] = plan.ContainerHistory{Image: img}
	}
	var ephemeral []v1.EphemeralContainer
	if r, ok := t.Records[p.UID]; ok && r.Hash == p.Hash {
		ephemeral = r.Ephemeral
		r.restore(&h, p)
		if !r.StartTime.IsZero() && (r.Finished == nil || h.Finished != nil) {
			t.StartTime, h.StartTime, t.hasRecordedStart = r.StartTime, r.MonotonicStartTime, true
		}
	}
	if startTime := p.Object.Status.StartTime; p.Traits.HasStateAtSource && startTime != nil {
		if t.StartTime = startTime.Time; !t.hasRecordedStart {
			h.StartTime = h.StartTime.Add(-max(h.StartTime.Sub(startTime.Time), 0))
		}
	}
	t.versionWithoutEphemeral = p
	t.PlanInput.Desired, t.PlanInput.Successor, t.PlanInput.History, t.PlanInput.Eviction = p, nil, h, nil
	if !p.Traits.HasStateAtSource {
		t.PlanInput.Desired = p.WithEphemeral(ephemeral)
	}
	if t.hasDir && t.dir(p.UID).Hash == "" { // add the directory, whose journal was lost or never written
		t.setDir(plan.PodDir{UID: p.UID, MayHaveVolumes: true})
	}
}

// restore adds the history in r to h. p is the version of r.
func (r Record) restore(h *plan.History, p *manifest.Pod) {
	h.Sizes, h.Evictions = r.Sizes, r.Evictions
	for id, probes := range r.ProbeStates {
		if _, isNewer := h.ProbeStates[id]; !isNewer {
			h.ProbeStates = withKey(h.ProbeStates, id, probes)
		}
	}
	if r.Finished.AppliesTo(p) {
		h.Finished = r.Finished
	}
	for name, e := range r.Containers {
		c := h.Containers[name]
		c.Attempt, c.LastExit, c.RestartRequestedID, c.PostStart = e.Attempt, e.LastExit, e.RestartRequestedID, e.PostStart
		c.Restarts = e.Attempt - min(e.Skipped, e.Attempt)
		h.Containers[name] = c
		if e := e.LastExit; e != nil && e.MessageRead {
			h.TerminationMessages = withKey(h.TerminationMessages, e.ID, e.TerminationMessage)
		}
	}
}

// resetStartTime sets the start time of the pod to now.
func (t *transition) resetStartTime() {
	t.StartTime, t.PlanInput.History.StartTime, t.hasRecordedStart = t.now, t.now, false
}

// applyRefs sets the referenced objects of the version in force and of its successor from the
// newest order. If the order contains no objects for the version in force, that version keeps its
// previous objects.
func (t *transition) applyRefs() {
	oldRefs := t.Refs
	switch p := t.PlanInput.Desired; {
	case p == nil:
		t.Refs = nil
	case t.Order.Desired != nil && EqualVersion(p, t.Order.Desired):
		t.Refs = t.Order.Refs
	case t.Order.Earlier != nil && EqualVersion(p, t.Order.Earlier):
		t.Refs = t.Order.EarlierRefs
	}
	oldSuccessorRefs := t.SuccessorRefs
	t.SuccessorRefs = nil
	if t.PlanInput.Successor != nil {
		t.SuccessorRefs = t.Order.Refs
	}
	if t.Refs != oldRefs && oldRefs != nil {
		t.PreviousRefs = oldRefs
	}
	t.PlanInput.Objects, t.PlanInput.SuccessorObjects = objectsOf(t.Refs), objectsOf(t.SuccessorRefs)
	if !t.Refs.EqualForStart(oldRefs) || !t.SuccessorRefs.EqualForStart(oldSuccessorRefs) {
		t.retryObjectFailures()
	}
}

// objectsOf returns the facts about r that decisions depend on. r may be nil.
func objectsOf(r *refs.Resolved) plan.ReferencedObjects {
	if r == nil {
		return plan.ReferencedObjects{}
	}
	return plan.ReferencedObjects{Blocker: r.Blocker, FilesDigest: r.FilesDigest}
}

// retryObjectFailures makes failed mounts of volumes, image pulls and container starts due now,
// because missing or outdated objects may have caused the failures.
func (t *transition) retryObjectFailures() {
	h := &t.PlanInput.History
	t.retryVolumes()
	h.Containers, h.SuccessorImages = maps.Clone(h.Containers), maps.Clone(h.SuccessorImages)
	for name, c := range h.Containers {
		c.Image.Failure.RetryAt, c.StartFailure.RetryAt = time.Time{}, time.Time{}
		h.Containers[name] = c
	}
	for name, img := range h.SuccessorImages {
		img.Failure.RetryAt = time.Time{}
		h.SuccessorImages[name] = img
	}
}

// retryVolumes makes the retries of failed operations on volumes due now.
func (t *transition) retryVolumes() {
	h := &t.PlanInput.History
	h.VolumesFailure.RetryAt, h.UpdateFailure.RetryAt, h.VolumeCheck.Failure.RetryAt = time.Time{}, time.Time{}, time.Time{}
}

// retryCleanup makes the retries of failed removals due now.
func (t *transition) retryCleanup() {
	h := &t.PlanInput.History
	h.CleanupFailures = maps.Clone(h.CleanupFailures)
	for subject, fail := range h.CleanupFailures {
		fail.RetryAt = time.Time{}
		h.CleanupFailures[subject] = fail
	}
}

// requestRestart requests the restart of the container with this name, or of all containers if name
// is "". Containers that neither run nor wait in a crash back-off are ignored.
func (t *transition) requestRestart(name string) {
	for i := range t.PlanInput.Observed {
		if !plan.IsCreatedFrom(&t.PlanInput.Observed[i], t.PlanInput.Desired) {
			continue
		}
		newestByName := map[string]runtime.Container{}
		for _, c := range t.PlanInput.Observed[i].Containers {
			if c.Annotations[runtime.AnnotationEphemeralContainer] != "" {
				continue // an ephemeral container is never restarted
			}
			if newest, ok := newestByName[c.Name]; !ok || c.Attempt > newest.Attempt {
				newestByName[c.Name] = c
			}
		}
		for _, c := range newestByName {
			if (c.State == runtime.Running || t.isBackingOff(c.Name)) && (name == "" || name == c.Name) {
				t.changeContainer(c.Name, func(h *plan.ContainerHistory) { h.RestartRequestedID = c.ID })
			}
		}
	}
}

// isBackingOff reports whether the last reported decision delays the restart of a container after
// a crash.
func (t *transition) isBackingOff(container string) bool {
	for _, s := range t.ReportedDecision.Steps {
		if s.Container == container && s.Crashes > 0 {
			return true
		}
	}
	return false
}

// applyReread applies a journal that a user has repaired or removed. It ignores the journal if the
// worker has written another journal for the pod or observed a sandbox, because in these cases the
// worker's history is newer.
func (t *transition) applyReread(reread JournalReread) {
	_, hasRecord := t.Records[reread.UID]
	p := t.Order.Desired
	if t.UnreadableJournals[reread.UID] == "" || hasRecord || p == nil || p.UID != reread.UID || len(t.PlanInput.Observed) > 0 {
		return
	}
	t.info("the unreadable journal of a pod was repaired or removed", "uid", reread.UID)
	t.UnreadableJournals = withoutKey(t.UnreadableJournals, reread.UID)
	if r := reread.Record; r != nil {
		t.Records = withKey(t.Records, r.UID, *r)
		t.setDir(plan.PodDir{UID: r.UID, Hash: r.Hash, MayHaveVolumes: r.HasVolumes})
		t.setVersion(p)
	}
}
