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

// stop stops incarnation inc because of why, and records when the stop began.
func (f *facts) stop(d *Decision, inc *runtime.Incarnation, why string) {
	d.Why = why
	s := f.in.History.Stopping
	if s == nil || s.SandboxID != inc.ID {
		s = &Stopping{SandboxID: inc.ID, Since: f.in.Now, Grace: graceAt(inc, f.in.History.Finished), Why: why}
		d.Stopping = s
	}
	s = f.shortenGrace(d, inc, s)
	// A start that has called the runtime may still create a container. So the stop waits until
	// no start is in progress.
	if f.cancelStarts(d) {
		f.keepHooks(d)
		return
	}
	t := stopBudget{since: s.Since, grace: s.Grace, why: why}
	if f.deletionOverdue(d, inc, s) {
		t.grace = 0
	}
	f.stopMembers(d, inc, t)
}

// A Deletion is a request to delete the pod with a UID, with a grace period that replaces that of
// the pod. At is when the deletion was requested.
type Deletion struct {
	UID   types.UID
	Grace time.Duration
	At    time.Time
}

// deleted returns the deletion request for incarnation inc; nil if there is none.
func (f *facts) deleted(inc *runtime.Incarnation) *Deletion {
	if del := f.in.Deletion; del != nil && del.UID == inc.UID && !inc.Foreign {
		return del
	}
	return nil
}

// shortenGrace returns s or, if there is a deletion request for inc, a copy of s with the grace
// period of the request. The copy is returned if the stop begins now, or if the grace period of the
// request ends earlier than that of s.
func (f *facts) shortenGrace(d *Decision, inc *runtime.Incarnation, s *Stopping) *Stopping {
	del := f.deleted(inc)
	if del == nil {
		return s
	}
	grace := max(del.At.Sub(s.Since), 0) + del.Grace
	if d.Stopping == nil && grace >= s.Grace {
		return s
	}
	shortened := *s
	shortened.Grace = grace
	d.Stopping = &shortened
	return d.Stopping
}

// deletionOverdue reports whether the grace period of a deletion request for inc has passed. Then
// the sandbox must be stopped without a grace period, because the runtime may still be stopping a
// container with a longer grace period.
func (f *facts) deletionOverdue(d *Decision, inc *runtime.Incarnation, s *Stopping) bool {
	if f.deleted(inc) == nil {
		return false
	}
	end := s.Since.Add(s.Grace + minGrace)
	if f.in.Now.Before(end) {
		d.wakeAt(end)
		return false
	}
	return true
}

// stopMembers stops the regular and init containers of inc concurrently, then the sidecars in
// reverse order of their start, then the sandbox. As in the kubelet, the preStop hooks of all
// containers, including sidecars, run at the same time. If the grace period is zero, only the
// sandbox is stopped, which kills all processes in it.
func (f *facts) stopMembers(d *Decision, inc *runtime.Incarnation, t stopBudget) {
	runs := running(inc)
	if inc.ID == "" {
		f.removeRecords(d, inc)
		return
	}
	if len(runs) == 0 && f.mayHaveUnobserved(inc) && t.remaining(f.in.Now) > 0 {
		f.keepHooks(d)
		d.wakeAt(f.in.Now.Add(t.remaining(f.in.Now))) // the stop must continue even if the runtime never responds
		return
	}
	if len(runs) == 0 || t.grace == 0 || f.in.ForceStop {
		f.doCleanup(d, StopSandbox{ID: inc.ID, Why: t.why})
		return
	}
	order.Slice(runs, byStopOrder)
	var hooksLeft []string
	first, _ := kindOfRecord(&runs[0])
	for i := range runs {
		c := &runs[i]
		if f.exceedsPodGrace(d, c, t) {
			f.doCleanup(d, StopSandbox{ID: inc.ID, Why: t.why})
			return
		}
		f.continueReadinessInStop(d, inc, c)
		kind, _ := kindOfRecord(c)
		if i > 0 && (first == Sidecar || kind == Sidecar) {
			if f.runPreStop(d, c, f.terminationInPod(c, t)) { // only the hook runs now; the container is stopped after the containers before it
				hooksLeft = append(hooksLeft, c.Name)
			}
			continue
		}
		if !f.stopContainer(d, c, f.terminationInPod(c, t)) {
			hooksLeft = append(hooksLeft, c.Name)
		}
	}
	if len(hooksLeft) > 0 && !d.Problem {
		d.Why = t.why + "; waiting for the preStop hook of " + strings.Join(hooksLeft, ", ")
	}
}

// mayHaveUnobserved reports whether a container that was not observed may run in the sandbox of
// inc. Stopping the sandbox would skip the preStop hook of that container.
func (f *facts) mayHaveUnobserved(inc *runtime.Incarnation) bool {
	return f.in.Unobserved && inc.Ready && !f.in.ForceStop
}

// byStopOrder compares containers for stopMembers: sidecars come last, in reverse order of their
// start. Other containers are sorted by name.
func byStopOrder(a, b runtime.Container) int {
	ka, ia := kindOfRecord(&a)
	kb, ib := kindOfRecord(&b)
	if (ka == Sidecar) != (kb == Sidecar) {
		if ka == Sidecar {
			return 1
		}
		return -1
	}
	if ka == Sidecar {
		return cmp.Compare(ib, ia)
	}
	return cmp.Compare(a.Name, b.Name)
}

// doCleanup adds an action that stops or removes an object, unless the action failed and its retry
// is not due.
func (f *facts) doCleanup(d *Decision, a Action) {
	fail := f.in.History.Cleanup[a.Subject()]
	if f.in.Now.Before(fail.Until) {
		d.wakeAt(fail.Until)
		if d.Why == "" || fail.Count > 1 {
			d.Why, d.Problem = fail.Message, true
		}
		return
	}
	d.do(a)
}

// removeRecords removes the containers of an incarnation that has no sandbox any more.
func (f *facts) removeRecords(d *Decision, inc *runtime.Incarnation) {
	for _, c := range inc.Containers {
		f.doCleanup(d, RemoveContainer{Container: c.Name, ID: c.ID})
	}
}

// mayCleanUp reports whether objects may be removed, because both the desired and the observed
// state are known.
func (f *facts) mayCleanUp(d *Decision) bool {
	return d.Phase != PhaseHold && !d.Replace && f.in.Node.Reachable
}

// cleanUp removes objects that are not needed any more: superseded sandboxes, all exited containers
// of a name except the last, and the directories of deleted versions.
func (f *facts) cleanUp(d *Decision) {
	for i := range f.stale {
		f.removeDead(d, &f.stale[i])
	}
	for i := range f.mine {
		if i > 0 && f.cur.Ready {
			f.removeDead(d, &f.mine[i])
		}
	}
	if f.cur != nil {
		f.removeOlderDead(d)
	}
	for _, dir := range f.in.Dirs {
		switch {
		case !f.isStaleDir(dir) || f.mayAppear() || f.in.DirsInUse[dir.UID]:
		case f.in.Now.Before(dir.KeepUntil):
			d.wakeAt(dir.KeepUntil)
		default:
			f.doCleanup(d, RemoveDir{UID: dir.UID})
		}
	}
}

// removeDead removes incarnation inc, unless inc is live, is still being stopped, or is kept for
// its exit codes (see exitsBy).
func (f *facts) removeDead(d *Decision, inc *runtime.Incarnation) {
	if IsLive(inc) || inc.ID != "" && f.in.isStopping(inc.ID) && !f.in.History.Released[inc.ID] {
		return
	}
	if until := f.exitsBy(inc); f.in.Now.Before(until) {
		d.wakeAt(until)
		return
	}
	if inc.ID == "" {
		f.removeRecords(d, inc)
		return
	}
	f.doCleanup(d, RemoveSandbox{ID: inc.ID, Released: f.in.History.Released[inc.ID]})
}

// exitCodeWait is how long a deleted pod of a cluster waits for exit codes that the runtime has not
// reported. After that, the reason ContainerStatusUnknown is published to the cluster.
const exitCodeWait = 2 * time.Minute

// exitsBy returns the time until which the stopped incarnation inc is kept, because its exit codes
// are unknown and must be published to the cluster; zero if inc need not be kept.
func (f *facts) exitsBy(inc *runtime.Incarnation) (until time.Time) {
	if f.in.Desired != nil || f.in.ForceStop || f.in.Previous == nil || !f.in.Previous.Traits.StateAtSource || !IsCreatedFrom(inc, f.in.Previous) {
		return until
	}
	for i := range inc.Containers {
		c := &inc.Containers[i]
		if c.State != runtime.ExitUnknown {
			continue
		}
		seen, ok := f.in.History.SeenExit[c.ID]
		if !ok {
			seen = f.in.Now
		}
		if at := seen.Add(exitCodeWait); at.After(until) {
			until = at
		}
	}
	return until
}

// removeOlderDead removes all exited containers of a name except the newest. The newest is kept,
// because podd logs --previous shows its log.
func (f *facts) removeOlderDead(d *Decision) {
	newest := map[string]*runtime.Container{}
	dead := func(c *runtime.Container) bool {
		return c.State == runtime.Exited || c.State == runtime.ExitUnknown || c.State == runtime.Created && c.Attempt+1 < f.attemptOf(c.Name)
	}
	for i := range f.cur.Containers {
		c := &f.cur.Containers[i]
		if kept := newest[c.Name]; dead(c) && (kept == nil || c.Attempt > kept.Attempt) {
			newest[c.Name] = c
		}
	}
	for i := range f.cur.Containers {
		if c := &f.cur.Containers[i]; dead(c) && newest[c.Name] != c {
			f.doCleanup(d, RemoveContainer{Container: c.Name, ID: c.ID})
		}
	}
}

// attemptOf returns the attempt number of the next start of the container with this name; 0 if the
// desired version has no such container.
func (f *facts) attemptOf(name string) uint32 {
	for i := range f.members {
		if f.members[i].spec.Name == name {
			return f.members[i].attempt
		}
	}
	return 0
}

// isStaleDir reports whether neither a desired nor an observed version uses directory dir.
func (f *facts) isStaleDir(dir Dir) bool {
	if dir.isOf(f.in.Desired) || dir.isOf(f.in.Successor) {
		return false
	}
	for _, inc := range f.in.Observed {
		if inc.UID == dir.UID {
			return false
		}
	}
	return true
}

// isOf reports whether d may be the directory of version p. p may be nil.
func (d Dir) isOf(p *manifest.Pod) bool {
	return p != nil && d.UID == p.UID && (d.Hash == p.Hash || d.Hash == "")
}

// containersOf returns the init containers and the regular containers of a pod.
func containersOf(spec *v1.PodSpec) []*v1.Container {
	var out []*v1.Container
	for i := range spec.InitContainers {
		out = append(out, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		out = append(out, &spec.Containers[i])
	}
	return out
}
