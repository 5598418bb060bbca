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
// observation is requested. This request is urgent if a decision waits for an observation, or if p
// shows that a sandbox or container has stopped.
func (t *transition) applyObservation(p *runtime.Pod, asOf time.Time) {
	if !asOf.After(t.Barrier) {
		t.requestObservation(ObserveSoon)
		if t.PlanInput.MayHaveUnobserved || !t.HasObserved || hasNewStop(p, t.PlanInput.Observed) {
			t.requestObservation(ObserveAtOnce)
		}
		return
	}
	t.outputs.AcceptedObservation = true
	if !t.HasObserved {
		t.PlanInput.FirstObservedAt = t.now
	}
	t.HasObserved, t.PlanInput.MayHaveUnobserved = true, false
	var observed []runtime.Incarnation
	if p != nil {
		observed = t.takeOver(withExits(p.Incarnations, t.PlanInput.Observed))
	}
	t.recordLostExits(observed)
	t.PlanInput.Observed = observed
	t.addDirs()
}

// blockUntilObserved prevents the creation of a sandbox for a new name until a newer observation,
// because another agent may have used the name since the last observation.
func (t *transition) blockUntilObserved() {
	t.PlanInput.MayHaveUnobserved, t.Barrier = true, t.now
	t.requestObservation(ObserveAtOnce)
}

// hasNewStop reports whether a sandbox or container has stopped since it was recorded. This is the
// case if a recorded ready sandbox is not ready in p, or if a recorded running container does not
// run in p. hasNewStop returns false if p is nil.
func hasNewStop(p *runtime.Pod, recorded []runtime.Incarnation) bool {
	if p == nil {
		return false
	}
	ran := map[string]bool{}
	for _, inc := range recorded {
		ran[inc.ID] = inc.Ready
		for _, c := range inc.Containers {
			ran[c.ID] = c.State == runtime.Running
		}
	}
	return slices.ContainsFunc(p.Incarnations, func(inc runtime.Incarnation) bool {
		return ran[inc.ID] && !inc.Ready || slices.ContainsFunc(inc.Containers, func(c runtime.Container) bool {
			return ran[c.ID] && c.State != runtime.Running
		})
	})
}

// addDirs ensures that PodDirs contains the directory of every observed incarnation of podd. A
// directory is missing if its journal was lost or never written. If PodDirs contains the directory,
// addDirs clears its KeepUntil, because the late call for which the directory was kept has created
// the incarnation.
func (t *transition) addDirs() {
	for i := range t.PlanInput.Observed {
		inc := &t.PlanInput.Observed[i]
		if inc.Foreign {
			continue
		}
		i := slices.IndexFunc(t.PlanInput.PodDirs, func(d plan.PodDir) bool { return d.UID == inc.UID })
		switch {
		case i < 0:
			t.setDir(plan.PodDir{UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationPodHash], MayHaveVolumes: true})
		case !t.PlanInput.PodDirs[i].KeepUntil.IsZero():
			t.setKeepUntil(inc.UID, time.Time{})
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

// recordObserved updates the history from the observed containers of Desired: their attempt
// numbers, their exits, and the times at which the exits were first observed. hasNewExit reports
// whether an exit was added or changed since the last call.
func (t *transition) recordObserved() (hasNewExit bool) {
	t.recoverEphemeral()
	for i := range t.PlanInput.Observed {
		inc := &t.PlanInput.Observed[i]
		t.recordUnknownExits(inc)
		if !plan.IsCreatedFrom(inc, t.PlanInput.Desired) {
			continue
		}
		for j := range inc.Containers {
			hasNewExit = t.recordContainer(&inc.Containers[j]) || hasNewExit
		}
	}
	t.forgetRemoved()
	hasNewExit, t.hasLostExits = hasNewExit || t.hasLostExits, false
	return hasNewExit
}

// recordLostExits records the exits of containers that are missing in an observation; see lostExits.
func (t *transition) recordLostExits(observed []runtime.Incarnation) {
	runs := func(inc *runtime.Incarnation) bool { return plan.IsCreatedFrom(inc, t.PlanInput.Desired) }
	exits := lostExits(runs, t.PlanInput.Observed, observed, t.now)
	for name, e := range exits {
		t.changeContainer(name, func(h *plan.ContainerHistory) {
			if h.LastExit == nil || h.LastExit.Attempt <= e.Attempt {
				h.LastExit = e
			}
		})
	}
	t.hasLostExits = t.hasLostExits || len(exits) > 0
}

// forgetRemoved removes sandboxes, containers and directories that no longer exist from the
// history.
func (t *transition) forgetRemoved() {
	keys := map[string]bool{} // IDs of existing containers and sandboxes, and subjects of their actions
	for _, d := range t.PlanInput.PodDirs {
		keys["dir/"+string(d.UID)] = true
	}
	for i := range t.PlanInput.Observed {
		id := t.PlanInput.Observed[i].ID
		keys[id], keys["sandbox/"+id], keys["kill/"+id] = true, true, true
		for _, c := range t.PlanInput.Observed[i].Containers {
			for _, subject := range []string{"", "stop/", "remove/", "preStop/", "postStart/"} {
				keys[subject+c.ID] = true
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
	h.ExitSeenAt, h.ReleasedSandboxes, h.CleanupFailures = filterKeys(h.ExitSeenAt, keys), filterKeys(h.ReleasedSandboxes, keys), filterKeys(h.CleanupFailures, keys)
	h.Kills = filterKeys(h.Kills, keys)
	if t.HasObserved { // before the first observation, containers that an earlier podd created may exist, so their history is kept
		h.ProbeStates, h.Terminations, h.TerminationMessages = filterKeys(h.ProbeStates, keys), filterKeys(h.Terminations, keys), filterKeys(h.TerminationMessages, keys)
		h.Sizes = filterKeys(h.Sizes, keys)
	}
}

// filterKeys returns the entries of m whose keys are in keys. If keys contains all keys of m, it
// returns m itself, otherwise a copy.
func filterKeys[V any](m map[string]V, keys map[string]bool) map[string]V {
	filtered := m
	for k := range m {
		if !keys[k] {
			filtered = maps.Clone(filtered)
			delete(filtered, k)
		}
	}
	return filtered
}

// recordUnknownExits records now as the time at which an exit was first observed, for the
// containers of inc that have exited with an unknown code.
func (t *transition) recordUnknownExits(inc *runtime.Incarnation) {
	for i := range inc.Containers {
		c := &inc.Containers[i]
		if _, isRecorded := t.PlanInput.History.ExitSeenAt[c.ID]; !isRecorded && c.State == runtime.ExitCodeUnknown && !inc.Foreign {
			t.PlanInput.History.ExitSeenAt = withKey(t.PlanInput.History.ExitSeenAt, c.ID, t.now)
		}
	}
}

// recordContainer updates the history of an observed container of Desired. hasNewExit reports
// whether an exit was added or changed.
func (t *transition) recordContainer(c *runtime.Container) (hasNewExit bool) {
	_, isStarting := t.PlanInput.InFlight[plan.StartContainer{Container: c.Name}.Subject()]
	t.recordRunning(c, !isStarting, t.now)
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
	if _, isRecorded := t.PlanInput.History.ExitSeenAt[c.ID]; !isRecorded {
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

// recordRunning records now as the time at which a container with probes was first observed
// running. ranBeforeStart reports whether the container already ran before this podd was started.
func (t *transition) recordRunning(c *runtime.Container, ranBeforeStart bool, now time.Time) {
	if c.State != runtime.Running {
		return
	}
	spec, _, _ := plan.FindContainer(t.PlanInput.Desired.Object, c.Name)
	probes := t.PlanInput.History.ProbeStates[c.ID]
	if spec == nil || !plan.HasProbes(spec) || !probes.Since.IsZero() {
		return
	}
	probes.Since, probes.RanBeforeStart = now, ranBeforeStart
	t.PlanInput.History.ProbeStates = withKey(t.PlanInput.History.ProbeStates, c.ID, probes)
}

// recordHookStart records the time at which a container whose postStart hook is not done was first
// observed to run.
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
