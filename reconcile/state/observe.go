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

// applyObservation replaces the observed state by p, which is nil if the runtime has no pod of this
// name. If the observation was requested before the newest effect ended, it is dropped and another
// observation is requested. The request is urgent if a decision waits for an observation, or if p
// shows that a sandbox or container has stopped.
func (t *transition) applyObservation(p *runtime.Pod, asOf time.Time) {
	if !asOf.After(t.Barrier) {
		t.requestObservation(ObserveSoon)
		if t.PlanInput.MayHaveUnobserved || !t.HasObserved || hasNewStop(p, t.PlanInput.Observed) {
			t.requestObservation(ObserveAtOnce)
		}
		return
	}
	t.out.AcceptedObservation = true
	t.HasObserved, t.PlanInput.MayHaveUnobserved = true, false
	var observed []runtime.Incarnation
	if p != nil {
		observed = t.takeOver(withExits(p.Incarnations, t.PlanInput.Observed))
	}
	t.recordLostExits(observed)
	t.PlanInput.Observed = observed
	t.addDirs()
}

// blockUntilObserved prevents the creation of a sandbox for a new name until there is a newer
// observation. Another agent may have used the name since the last observation.
func (t *transition) blockUntilObserved() {
	t.PlanInput.MayHaveUnobserved, t.Barrier = true, t.now
	t.requestObservation(ObserveAtOnce)
}

// hasNewStop reports whether a sandbox or container has stopped since it was recorded: a recorded
// ready sandbox is not ready in p, or a recorded running container does not run in p. It returns
// false if p is nil.
func hasNewStop(p *runtime.Pod, recorded []runtime.Incarnation) bool {
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

// addDirs adds a directory for every observed incarnation of podd without a known directory. A
// directory is unknown if its journal was lost or never written. If the directory is known, addDirs
// clears its KeepUntil, because the late call for which the directory was kept has created the
// incarnation.
func (t *transition) addDirs() {
	for i := range t.PlanInput.Observed {
		inc := &t.PlanInput.Observed[i]
		if inc.Foreign {
			continue
		}
		at := slices.IndexFunc(t.PlanInput.PodDirs, func(d plan.PodDir) bool { return d.UID == inc.UID })
		switch {
		case at < 0:
			t.setDir(plan.PodDir{UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationPodHash], MayHaveVolumes: true})
		case !t.PlanInput.PodDirs[at].KeepUntil.IsZero():
			dir := t.PlanInput.PodDirs[at]
			dir.KeepUntil = time.Time{}
			t.setDir(dir)
		}
	}
}

// PrepareDecision returns the state for the decision at the time now, with a history that is
// updated from the newest observation. inFlight and dirsInUse become plan.Input.InFlight and
// plan.Input.DirsInUse.
func (s *State) PrepareDecision(inFlight map[string]plan.Action, dirsInUse map[types.UID]bool, now time.Time) (*State, Outputs) {
	t := s.begin(now)
	t.PlanInput.InFlight, t.PlanInput.DirsInUse = inFlight, dirsInUse
	if t.recordObserved() && mayFinish(t.PlanInput.Desired) {
		t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
	}
	t.recordTakenOver()
	t.forgetStopped()
	t.PlanInput.Now = now
	t.PlanInput.History.AllocatedSizes = t.PlanInput.AllocatedSizes()
	return t.end()
}

// mayFinish reports whether a container of p may exit without being restarted. Such an exit must be
// stored in the journal.
func mayFinish(p *manifest.Pod) bool {
	if p == nil {
		return false
	}
	spec := &p.Object.Spec
	ends := func(c v1.Container) bool { return manifest.EffectiveRestartPolicy(spec, &c) != v1.RestartPolicyAlways }
	return slices.ContainsFunc(spec.InitContainers, ends) || slices.ContainsFunc(spec.Containers, ends)
}

// recordObserved updates the history from the observed containers of Desired: attempt numbers,
// exits, and when an exit was first observed. exited reports whether an exit was added or changed
// since the last call.
func (t *transition) recordObserved() (exited bool) {
	t.recoverEphemeral()
	for i := range t.PlanInput.Observed {
		inc := &t.PlanInput.Observed[i]
		t.recordUnknownExits(inc)
		if !plan.IsCreatedFrom(inc, t.PlanInput.Desired) {
			continue
		}
		for j := range inc.Containers {
			exited = t.recordContainer(&inc.Containers[j]) || exited
		}
	}
	t.forgetRemoved()
	exited, t.hasLostExits = exited || t.hasLostExits, false
	return exited
}

// recordLostExits records the exits of containers that are missing in an observation; see lostExits.
func (t *transition) recordLostExits(observed []runtime.Incarnation) {
	runs := func(inc *runtime.Incarnation) bool { return plan.IsCreatedFrom(inc, t.PlanInput.Desired) }
	lost := lostExits(runs, t.PlanInput.Observed, observed, t.now)
	for name, e := range lost {
		t.changeContainer(name, func(h *plan.ContainerHistory) {
			if h.LastExit == nil || h.LastExit.Attempt <= e.Attempt {
				h.LastExit = e
			}
		})
	}
	t.hasLostExits = t.hasLostExits || len(lost) > 0
}

// forgetRemoved removes sandboxes, containers and directories that no longer exist from the
// history.
func (t *transition) forgetRemoved() {
	existing := map[string]bool{} // keys: IDs of containers and sandboxes, and subjects of actions
	for _, d := range t.PlanInput.PodDirs {
		existing["dir/"+string(d.UID)] = true
	}
	for i := range t.PlanInput.Observed {
		id := t.PlanInput.Observed[i].ID
		existing[id], existing["sandbox/"+id] = true, true
		for _, c := range t.PlanInput.Observed[i].Containers {
			for _, subject := range []string{"", "stop/", "remove/", "preStop/", "postStart/"} {
				existing[subject+c.ID] = true
			}
		}
	}
	if !IsRunning(t.PlanInput.Observed, t.PlanInput.Previous) && !awaitsExitCode(t.PlanInput.Observed, t.PlanInput.Previous) {
		t.PlanInput.Previous = nil
	}
	if !slices.ContainsFunc(t.PlanInput.Observed, func(inc runtime.Incarnation) bool { return !plan.IsCreatedFrom(&inc, t.PlanInput.Desired) }) {
		t.replacedVersion = nil
	}
	h := &t.PlanInput.History
	h.ExitSeenAt, h.ReleasedSandboxes, h.CleanupFailures = filterKeys(h.ExitSeenAt, existing), filterKeys(h.ReleasedSandboxes, existing), filterKeys(h.CleanupFailures, existing)
	if t.HasObserved { // before the first observation, containers that an earlier podd created may exist, so their history is kept
		h.ProbeStates, h.Terminations, h.TerminationMessages = filterKeys(h.ProbeStates, existing), filterKeys(h.Terminations, existing), filterKeys(h.TerminationMessages, existing)
		h.Sizes = filterKeys(h.Sizes, existing)
	}
}

// filterKeys returns the entries of m with keys in keys. If keys contains all keys of m, it
// returns m itself, otherwise a copy.
func filterKeys[V any](m map[string]V, keys map[string]bool) map[string]V {
	kept := m
	for k := range m {
		if !keys[k] {
			kept = maps.Clone(kept)
			delete(kept, k)
		}
	}
	return kept
}

// recordUnknownExits records, for the containers of inc that have exited with an unknown code,
// when the exit was first observed.
func (t *transition) recordUnknownExits(inc *runtime.Incarnation) {
	for i := range inc.Containers {
		c := &inc.Containers[i]
		if _, recorded := t.PlanInput.History.ExitSeenAt[c.ID]; !recorded && c.State == runtime.ExitCodeUnknown && !inc.Foreign {
			t.PlanInput.History.ExitSeenAt = withKey(t.PlanInput.History.ExitSeenAt, c.ID, t.now)
		}
	}
}

// recordContainer updates the history of an observed container of Desired. exited reports whether
// an exit was added or changed.
func (t *transition) recordContainer(c *runtime.Container) (exited bool) {
	_, starting := t.PlanInput.InFlight[plan.StartContainer{Container: c.Name}.Subject()]
	t.recordRunning(c, !starting, t.now)
	t.recordHookStart(c)
	h := t.PlanInput.History.Containers[c.Name]
	if (c.Attempt >= h.Attempt || c.Restarts() >= h.Restarts) && c.State != runtime.Created {
		t.changeContainer(c.Name, func(h *plan.ContainerHistory) {
			h.Attempt, h.Restarts = max(h.Attempt, c.Attempt+1), max(h.Restarts, c.Restarts()+1)
		})
	}
	if c.State != runtime.Exited || c.WasStartInterrupted() {
		return false
	}
	if _, recorded := t.PlanInput.History.ExitSeenAt[c.ID]; !recorded {
		t.PlanInput.History.ExitSeenAt = withKey(t.PlanInput.History.ExitSeenAt, c.ID, t.now)
	}
	message, messageRead := t.PlanInput.History.TerminationMessages[c.ID]
	if e := h.LastExit; e != nil && (e.Attempt > c.Attempt || e.ID == c.ID && e.Code == c.ExitCode && (e.MessageRead || !messageRead)) {
		return false
	}
	t.changeContainer(c.Name, func(h *plan.ContainerHistory) {
		h.LastExit = plan.NewExit(c)
		h.LastExit.Why, h.LastExit.TerminationMessage, h.LastExit.MessageRead = t.PlanInput.History.Terminations[c.ID].Why, message, messageRead
	})
	return true
}

// recordRunning records now as the time at which a container with probes was first observed running.
// adopted reports whether the container already ran before this podd was started.
func (t *transition) recordRunning(c *runtime.Container, adopted bool, now time.Time) {
	if c.State != runtime.Running {
		return
	}
	spec, _, _ := plan.FindContainer(t.PlanInput.Desired.Object, c.Name)
	probed := t.PlanInput.History.ProbeStates[c.ID]
	if spec == nil || !plan.HasProbes(spec) || !probed.Since.IsZero() {
		return
	}
	probed.Since, probed.RanBeforeStart = now, adopted
	t.PlanInput.History.ProbeStates = withKey(t.PlanInput.History.ProbeStates, c.ID, probed)
}

// recordHookStart records when a container whose postStart hook is not done was first observed to
// run.
func (t *transition) recordHookStart(c *runtime.Container) {
	h := t.PlanInput.History.Containers[c.Name].PostStart
	if c.State == runtime.Running && h.Due && h.Attempt == c.Attempt && h.Since.IsZero() {
		h.Since = t.now
		t.changeContainer(c.Name, func(ch *plan.ContainerHistory) { ch.PostStart = h })
	}
}

// forgetStopped removes History.Stopping if its sandbox no longer exists. Before the runtime was
// observed, it does nothing, because an earlier podd may have begun to stop a sandbox that still
// exists.
func (t *transition) forgetStopped() {
	s := t.PlanInput.History.Stopping
	if s == nil || !t.HasObserved {
		return
	}
	if runtime.FindSandbox(t.PlanInput.Observed, s.SandboxID) == nil {
		t.PlanInput.History.Stopping = nil
	}
}
