package state

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// applyObservation replaces the observed state. An observation that was requested before
// the newest effect ended is dropped and requested again. That is urgent if a decision
// waits for it, or if something has ended that is recorded as running.
func (t *transition) applyObservation(p *runtime.Pod, asOf time.Time) {
	if !asOf.After(t.Barrier) {
		t.request(Soon)
		if t.In.Unobserved || !t.HasObserved || hasEnded(p, t.In.Observed) {
			t.request(Urgent)
		}
		return
	}
	t.out.Confirmed = true
	t.HasObserved, t.In.Unobserved = true, false
	var observed []runtime.Incarnation
	if p != nil {
		observed = t.takeOver(withExits(p.Incarnations, t.In.Observed))
	}
	t.recordLost(observed)
	t.In.Observed = observed
	t.addDirs()
}

// requireObservation keeps anything from being created under a new name until a newer
// observation: since the last one, another agent may have used the name.
func (t *transition) requireObservation() {
	t.In.Unobserved, t.Barrier = true, t.now
	t.request(Urgent)
}

// hasEnded reports whether a sandbox or container of p, which is nil if the runtime has
// none, has ended and is recorded as ready or running.
func hasEnded(p *runtime.Pod, recorded []runtime.Incarnation) bool {
	if p == nil {
		return false
	}
	alive := map[string]bool{}
	for _, inc := range recorded {
		alive[inc.ID] = inc.Ready
		for _, c := range inc.Containers {
			alive[c.ID] = c.State == runtime.Running
		}
	}
	return slices.ContainsFunc(p.Incarnations, func(inc runtime.Incarnation) bool {
		return alive[inc.ID] && !inc.Ready || slices.ContainsFunc(inc.Containers, func(c runtime.Container) bool {
			return alive[c.ID] && c.State != runtime.Running
		})
	})
}

// addDirs records a directory for every observed pod of ours. Its journal may be lost, or
// podd may have been killed before it wrote one. A directory that was kept for the late
// call of an earlier podd is kept no longer, because what the call created is observed.
func (t *transition) addDirs() {
	for i := range t.In.Observed {
		inc := &t.In.Observed[i]
		if inc.Foreign {
			continue
		}
		at := slices.IndexFunc(t.In.Dirs, func(d plan.Dir) bool { return d.UID == inc.UID })
		switch {
		case at < 0:
			t.setDir(plan.Dir{UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationHash], Volumes: true})
		case !t.In.Dirs[at].Keep.IsZero():
			dir := t.In.Dirs[at]
			dir.Keep = time.Time{}
			t.setDir(dir)
		}
	}
}

// Recall prepares the state for a decision: it updates the history from the newest
// observation of the version in force. inFlight and used are those of plan.Input.
func (s State) Recall(inFlight map[string]plan.Action, used map[types.UID]bool, now time.Time) (State, Outputs) {
	t := s.begin(now)
	t.In.InFlight, t.In.DirsInUse = inFlight, used
	if t.recordObserved() && runsToEnd(t.In.Desired) {
		t.write(t.In.Desired.UID, t.In.Desired.Hash)
	}
	t.recordTakenOver()
	t.forgetStopped()
	t.In.Now = now
	t.In.History.Allocated = t.In.AllocatedSizes()
	return t.end()
}

// runsToEnd reports whether a container of p may terminate for good, so that its exit must
// be stored in the journal.
func runsToEnd(p *manifest.Pod) bool {
	if p == nil {
		return false
	}
	spec := &p.Spec.Spec
	ends := func(c v1.Container) bool { return manifest.RestartPolicyOf(spec, &c) != v1.RestartPolicyAlways }
	return slices.ContainsFunc(spec.InitContainers, ends) || slices.ContainsFunc(spec.Containers, ends)
}

// recordObserved updates the history from the newest observation of Desired's containers:
// attempt numbers in use, and exits with the time at which they were observed. It reports
// whether a container has exited.
func (t *transition) recordObserved() (exited bool) {
	t.recoverEphemeral()
	for i := range t.In.Observed {
		inc := &t.In.Observed[i]
		t.recordUnknownExits(inc)
		if !plan.Runs(t.In.Desired, inc) {
			continue
		}
		for j := range inc.Containers {
			exited = t.recordContainer(&inc.Containers[j]) || exited
		}
	}
	t.forgetRemoved()
	exited, t.exitsLost = exited || t.exitsLost, false
	return exited
}

// recordLost records the ends of containers that are missing in an observation.
func (t *transition) recordLost(observed []runtime.Incarnation) {
	runs := func(inc *runtime.Incarnation) bool { return plan.Runs(t.In.Desired, inc) }
	lost := lostEnds(runs, t.In.Observed, observed, t.now)
	for name, e := range lost {
		t.container(name, func(h *plan.ContainerHistory) {
			if h.LastExit == nil || h.LastExit.Attempt <= e.Attempt {
				h.LastExit = &e
			}
		})
	}
	t.exitsLost = t.exitsLost || len(lost) > 0
}

// forgetRemoved forgets the history of sandboxes, containers and directories that no longer
// exist.
func (t *transition) forgetRemoved() {
	there := map[string]bool{}
	for _, d := range t.In.Dirs {
		there["dir/"+string(d.UID)] = true
	}
	for i := range t.In.Observed {
		id := t.In.Observed[i].ID
		there[id], there["sandbox/"+id] = true, true
		for _, c := range t.In.Observed[i].Containers {
			for _, subject := range []string{"", "stop/", "remove/", "preStop/", "postStart/"} {
				there[subject+c.ID] = true
			}
		}
	}
	if !IsRunning(t.In.Observed, t.In.Previous) && !awaitsExit(t.In.Observed, t.In.Previous) {
		t.In.Previous = nil
	}
	if !slices.ContainsFunc(t.In.Observed, func(inc runtime.Incarnation) bool { return !plan.Runs(t.In.Desired, &inc) }) {
		t.replaced = nil
	}
	h := &t.In.History
	h.SeenExit, h.Released, h.Cleanup = filterKeys(h.SeenExit, there), filterKeys(h.Released, there), filterKeys(h.Cleanup, there)
	if t.HasObserved { // before that, it is not known which of them exist
		h.Probed, h.Terminations, h.TerminationMessages = filterKeys(h.Probed, there), filterKeys(h.Terminations, there), filterKeys(h.TerminationMessages, there)
		h.Sizes = filterKeys(h.Sizes, there)
	}
}

// filterKeys returns m without the keys that are not in there. If all are, it returns m
// itself.
func filterKeys[V any](m map[string]V, there map[string]bool) map[string]V {
	kept := m
	for k := range m {
		if !there[k] {
			kept = maps.Clone(kept)
			delete(kept, k)
		}
	}
	return kept
}

// recordUnknownExits records when containers with an unknown exit code were first observed
// to have exited.
func (t *transition) recordUnknownExits(inc *runtime.Incarnation) {
	for i := range inc.Containers {
		c := &inc.Containers[i]
		if _, recorded := t.In.History.SeenExit[c.ID]; !recorded && c.State == runtime.ExitUnknown && !inc.Foreign {
			t.In.History.SeenExit = with(t.In.History.SeenExit, c.ID, t.now)
		}
	}
}

// recordContainer updates the history of a container. It reports whether its exit is new.
func (t *transition) recordContainer(c *runtime.Container) (exited bool) {
	_, starting := t.In.InFlight[plan.StartContainer{Container: c.Name}.Subject()]
	t.recordRunning(c, !starting, t.now)
	t.recordHookStart(c)
	h := t.In.History.Containers[c.Name]
	if (c.Attempt >= h.Attempt || c.Restarts() >= h.Restarts) && c.State != runtime.Created {
		t.container(c.Name, func(h *plan.ContainerHistory) {
			h.Attempt, h.Restarts = max(h.Attempt, c.Attempt+1), max(h.Restarts, c.Restarts()+1)
		})
	}
	if c.State != runtime.Exited || c.StartInterrupted() {
		return false
	}
	if _, recorded := t.In.History.SeenExit[c.ID]; !recorded {
		t.In.History.SeenExit = with(t.In.History.SeenExit, c.ID, t.now)
	}
	said, told := t.In.History.TerminationMessages[c.ID]
	if e := h.LastExit; e != nil && (e.Attempt > c.Attempt || e.ID == c.ID && e.Code == c.ExitCode && (e.MessageRead || !told)) {
		return false
	}
	t.container(c.Name, func(h *plan.ContainerHistory) {
		h.LastExit = &plan.Exit{
			ID: c.ID, Code: c.ExitCode, Reason: c.Reason, Message: c.Message, Why: t.In.History.Terminations[c.ID].Why, TerminationMessage: said, MessageRead: told,
			StartedAt: c.StartedAt, FinishedAt: c.FinishedAt, Attempt: c.Attempt, Skipped: c.Attempt - c.Restarts(),
		}
	})
	return true
}

// recordRunning records when a container with probes was first observed to run. adopted
// reports whether it was not started just now.
func (t *transition) recordRunning(c *runtime.Container, adopted bool, now time.Time) {
	if c.State != runtime.Running {
		return
	}
	spec, _, _ := plan.FindContainer(t.In.Desired.Spec, c.Name)
	probed := t.In.History.Probed[c.ID]
	if spec == nil || !plan.HasProbes(spec) || !probed.Since.IsZero() {
		return
	}
	probed.Since, probed.Adopted = now, adopted
	t.In.History.Probed = with(t.In.History.Probed, c.ID, probed)
}

// recordHookStart records when a container with a due postStart hook was first observed to
// run.
func (t *transition) recordHookStart(c *runtime.Container) {
	h := t.In.History.Containers[c.Name].PostStart
	if c.State == runtime.Running && h.Owed && h.Attempt == c.Attempt && h.Since.IsZero() {
		h.Since = t.now
		t.container(c.Name, func(ch *plan.ContainerHistory) { ch.PostStart = h })
	}
}

// forgetStopped forgets a termination once its sandbox is gone. Before the runtime was
// observed that is not known: a termination that an earlier podd began continues with the
// rest of its grace.
func (t *transition) forgetStopped() {
	s := t.In.History.Stopping
	if s == nil || !t.HasObserved {
		return
	}
	if runtime.FindSandbox(t.In.Observed, s.SandboxID) == nil {
		t.In.History.Stopping = nil
	}
}
