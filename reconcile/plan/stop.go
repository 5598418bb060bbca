package plan

import (
	"cmp"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
	"podd/runtime"
)

// minGrace is the minimum grace period of a container, even if the grace period of its pod has
// passed, for example during a restart of podd. The kubelet uses the same value.
const minGrace = 2 * time.Second

// stop stops incarnation inc and records when the stop began. reason is the reason for users.
func (f *facts) stop(d *Decision, inc *runtime.Incarnation, reason string) {
	d.Why = reason
	s := f.in.History.Stopping
	if s == nil || s.SandboxID != inc.ID {
		s = &SandboxTermination{SandboxID: inc.ID, Since: f.in.Now, Grace: effectiveGrace(inc, f.in.History.Finished), Why: reason}
		d.Stopping = s
	}
	s = f.shortenGrace(d, inc, s)
	// A start that has called the runtime may still create a container. So the stop waits until
	// no start is in progress.
	if f.cancelStarts(d) {
		f.keepHooks(d)
		return
	}
	t := stopBudget{since: s.Since, grace: s.Grace, why: reason}
	if f.isDeletionOverdue(d, inc, s) {
		t.grace = 0
	}
	f.stopContainers(d, inc, t)
	if del := f.deletionOf(inc); del != nil && del.Eviction != nil {
		f.checkOverdue(d, inc, stopBudget{since: del.At, grace: del.Grace})
	}
}

// A Deletion is a request to delete the pod with this UID. Grace replaces the grace period of the
// pod. At is when the deletion was requested.
type Deletion struct {
	UID   types.UID
	Grace time.Duration
	At    time.Time
	// Eviction is the eviction of the pod after its deletion was requested; nil if there was none.
	Eviction *Eviction
}

// NewDeletion returns a request to delete the pod with this UID. The request replaces previous, which may
// be nil. It retains the eviction in previous if previous is about the same pod.
func NewDeletion(previous *Deletion, uid types.UID, grace time.Duration, now time.Time) *Deletion {
	d := &Deletion{UID: uid, Grace: grace, At: now}
	if previous != nil && previous.UID == uid {
		d.Eviction = previous.Eviction
	}
	return d
}

// WithEviction returns d with the eviction e. The first eviction of a pod is retained. The grace period is
// limited to that of e. WithEviction returns d itself if e changes nothing.
func (d *Deletion) WithEviction(e *Eviction, now time.Time) *Deletion {
	grace := max(e.Grace, evictGrace)
	isShorter := now.Add(grace).Before(d.At.Add(d.Grace))
	if d.Eviction != nil && !isShorter {
		return d
	}
	evicted := *d
	evicted.Eviction = cmp.Or(d.Eviction, e)
	if isShorter {
		evicted.Grace, evicted.At = grace, now
	}
	return &evicted
}

// deletionOf returns the deletion request for incarnation inc; nil if there is none.
func (f *facts) deletionOf(inc *runtime.Incarnation) *Deletion {
	if del := f.in.Deletion; del != nil && del.UID == inc.UID && !inc.Foreign {
		return del
	}
	return nil
}

// shortenGrace applies a deletion request for inc to its termination s. It returns a copy of s with
// the grace period of the request if the stop begins now, or if that grace period ends earlier than
// that of s. In all other cases, it returns s.
func (f *facts) shortenGrace(d *Decision, inc *runtime.Incarnation, s *SandboxTermination) *SandboxTermination {
	del := f.deletionOf(inc)
	if del == nil {
		return s
	}
	grace := max(del.At.Sub(s.Since), 0) + del.Grace
	if d.Stopping == nil && grace >= s.Grace {
		return s
	}
	copied := *s
	copied.Grace = grace
	d.Stopping = &copied
	return d.Stopping
}

// isDeletionOverdue reports whether the grace period of a deletion request for inc has passed. In
// that case the sandbox must be stopped without a grace period, because the runtime may still be
// stopping a container with a longer grace period.
func (f *facts) isDeletionOverdue(d *Decision, inc *runtime.Incarnation, s *SandboxTermination) bool {
	if f.deletionOf(inc) == nil {
		return false
	}
	end := s.Since.Add(s.Grace + minGrace)
	if f.in.Now.Before(end) {
		d.wakeAt(end)
		return false
	}
	return true
}

// stopContainers stops the regular and init containers of inc concurrently, then the sidecars in
// reverse order of their start, then the sandbox. As in the kubelet, the preStop hooks of all
// containers, including sidecars, run at the same time. After the grace period, the containers no
// longer wait for each other, so that each gets minGrace. If the grace period is zero, only the
// sandbox is stopped, which kills all processes in it.
func (f *facts) stopContainers(d *Decision, inc *runtime.Incarnation, t stopBudget) {
	runs := runningContainers(inc)
	if inc.ID == "" {
		f.removeContainers(d, inc)
		return
	}
	if len(runs) == 0 && f.mayHaveUnobserved(inc) && t.remaining(f.in.Now) > 0 {
		f.keepHooks(d)
		d.wakeAt(f.in.Now.Add(t.remaining(f.in.Now))) // the stop must continue even if the runtime never responds
		return
	}
	if len(runs) == 0 || t.grace == 0 || f.in.ForceStop {
		f.addCleanup(d, StopSandbox{ID: inc.ID, Why: t.why})
		return
	}
	order.Slice(runs, byStopOrder)
	var hooksLeft []string
	firstKind, _ := recordedKind(&runs[0])
	for i := range runs {
		c := &runs[i]
		if f.exceedsPodGrace(d, c, t) {
			f.addCleanup(d, StopSandbox{ID: inc.ID, Why: t.why})
			return
		}
		f.continueReadinessInStop(d, inc, c)
		kind, _ := recordedKind(c)
		remaining := t.remaining(f.in.Now)
		if i > 0 && (firstKind == KindSidecar || kind == KindSidecar) && remaining > 0 {
			d.wakeAt(f.in.Now.Add(remaining))
			if f.runPreStop(d, c, f.terminationInPod(c, t)) { // only the hook runs now; the container is stopped after the containers before it
				hooksLeft = append(hooksLeft, c.Name)
			}
			continue
		}
		if !f.stopContainer(d, c, f.terminationInPod(c, t)) {
			hooksLeft = append(hooksLeft, c.Name)
		}
	}
	if len(hooksLeft) > 0 && !d.NeedsUser {
		d.Why = t.why + "; waiting for the preStop hook of " + strings.Join(hooksLeft, ", ")
	}
}

// mayHaveUnobserved reports whether a container that was not observed may run in the sandbox of
// inc. Stopping the sandbox would skip the preStop hook of that container.
func (f *facts) mayHaveUnobserved(inc *runtime.Incarnation) bool {
	return f.in.MayHaveUnobserved && inc.Ready && !f.in.ForceStop
}

// byStopOrder compares containers for stopContainers: sidecars come last, in reverse order of their
// start. Other containers are sorted by name.
func byStopOrder(a, b runtime.Container) int {
	ka, ia := recordedKind(&a)
	kb, ib := recordedKind(&b)
	if (ka == KindSidecar) != (kb == KindSidecar) {
		if ka == KindSidecar {
			return 1
		}
		return -1
	}
	if ka == KindSidecar {
		return cmp.Compare(ib, ia)
	}
	return cmp.Compare(a.Name, b.Name)
}

// addCleanup adds an action that stops or removes an object. If the action has failed, addCleanup
// adds it only when its retry is due.
func (f *facts) addCleanup(d *Decision, a Action) {
	fail := f.in.History.CleanupFailures[a.Subject()]
	if f.in.Now.Before(fail.RetryAt) {
		d.wakeAt(fail.RetryAt)
		if d.Why == "" || fail.Count > 1 {
			d.Why, d.NeedsUser = fail.Message, true
		}
		return
	}
	d.addAction(a)
}

// removeContainers removes the containers of an incarnation that has no sandbox any more.
func (f *facts) removeContainers(d *Decision, inc *runtime.Incarnation) {
	for _, c := range inc.Containers {
		f.addCleanup(d, RemoveContainer{Container: c.Name, ID: c.ID})
	}
}

// mayCleanUp reports whether objects may be removed. This requires that both the desired and the
// observed state are known.
func (f *facts) mayCleanUp(d *Decision) bool {
	return d.Phase != PhaseHold && !d.UseSuccessor && f.in.Node.RuntimeReachable
}

// cleanUp removes objects that are not needed any more: superseded sandboxes, exited containers that
// Node.DeadContainers does not keep, and the directories of deleted versions.
func (f *facts) cleanUp(d *Decision) {
	for i := range f.incarnationsToStop {
		f.removeStopped(d, &f.incarnationsToStop[i])
	}
	for i := range f.desiredIncarnations {
		if i > 0 && f.current.Ready {
			f.removeStopped(d, &f.desiredIncarnations[i])
		}
	}
	if f.current != nil {
		f.removeDead(d)
	}
	for _, dir := range f.in.PodDirs {
		switch {
		case !f.isStaleDir(dir) || f.mayHaveUnknownObject() || f.in.DirsInUse[dir.UID]:
		case f.in.Now.Before(dir.KeepUntil):
			d.wakeAt(dir.KeepUntil)
		default:
			f.addCleanup(d, RemoveDir{UID: dir.UID})
		}
	}
}

// removeStopped removes incarnation inc. It does nothing if inc is live, is still being stopped, or
// is kept for its exit codes (see keepForExitsUntil).
func (f *facts) removeStopped(d *Decision, inc *runtime.Incarnation) {
	if IsLive(inc) || inc.ID != "" && f.in.isSandboxStopping(inc.ID) && !f.in.History.ReleasedSandboxes[inc.ID] {
		return
	}
	if until := f.keepForExitsUntil(inc); f.in.Now.Before(until) {
		d.wakeAt(until)
		return
	}
	if inc.ID == "" {
		f.removeContainers(d, inc)
		return
	}
	f.addCleanup(d, RemoveSandbox{ID: inc.ID, Released: f.in.History.ReleasedSandboxes[inc.ID]})
}

// exitCodeTimeout is how long a deleted pod of a cluster waits for exit codes that the runtime has
// not reported. After that time, the reason ContainerStatusUnknown is published to the cluster.
const exitCodeTimeout = 2 * time.Minute

// keepForExitsUntil returns the time until which the stopped incarnation inc is kept, because its
// exit codes are unknown and must be published to the cluster; zero if inc need not be kept.
func (f *facts) keepForExitsUntil(inc *runtime.Incarnation) (until time.Time) {
	if f.in.Desired != nil || f.in.ForceStop || f.in.Previous == nil || !f.in.Previous.Traits.HasStateAtSource || !IsCreatedFrom(inc, f.in.Previous) {
		return until
	}
	for i := range inc.Containers {
		c := &inc.Containers[i]
		if c.State != runtime.ExitCodeUnknown {
			continue
		}
		seenAt, ok := f.in.History.ExitSeenAt[c.ID]
		if !ok {
			seenAt = f.in.Now
		}
		if end := seenAt.Add(exitCodeTimeout); end.After(until) {
			until = end
		}
	}
	return until
}

// attemptOf returns the attempt number of the next start of the container with this name; 0 if the
// desired version has no such container.
func (f *facts) attemptOf(name string) uint32 {
	for i := range f.containers {
		if f.containers[i].spec.Name == name {
			return f.containers[i].attempt
		}
	}
	return 0
}

// isStaleDir reports whether directory dir belongs to no desired or observed version.
func (f *facts) isStaleDir(dir PodDir) bool {
	if dir.mayBelongTo(f.in.Desired) || dir.mayBelongTo(f.in.Successor) {
		return false
	}
	for _, inc := range f.in.Observed {
		if inc.UID == dir.UID {
			return false
		}
	}
	return true
}

// mayBelongTo reports whether d may be the directory of version p. p may be nil.
func (d PodDir) mayBelongTo(p *manifest.Pod) bool {
	return p != nil && d.UID == p.UID && (d.Hash == p.Hash || d.Hash == "")
}

// containersOf returns the init containers and the regular containers of a pod.
func containersOf(spec *v1.PodSpec) []*v1.Container {
	var containers []*v1.Container
	for i := range spec.InitContainers {
		containers = append(containers, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		containers = append(containers, &spec.Containers[i])
	}
	return containers
}
