package plan

import (
	"time"

	"podd/runtime"
)

// A stopBudget is the grace period of a termination, which the preStop hook and the stop share.
type stopBudget struct {
	since       time.Time
	grace       time.Duration
	why         string
	willRestart bool // whether the container is restarted after it has exited

	hasFailedProbe bool // whether a failed startup or liveness probe is the reason
}

// elapsed returns the part of the grace period that has passed. A start time in the future counts
// as now.
func (t stopBudget) elapsed(now time.Time) time.Duration {
	return min(max(now.Sub(t.since), 0), t.grace)
}

// remaining returns the part of the grace period that has not passed.
func (t stopBudget) remaining(now time.Time) time.Duration { return t.grace - t.elapsed(now) }

// runtimeGrace returns the grace period that the runtime gets for the stop: the remaining part, at
// least minGrace. It is zero if the whole grace period is zero.
func (t stopBudget) runtimeGrace(now time.Time) time.Duration {
	if t.grace == 0 {
		return 0
	}
	return max(t.remaining(now), minGrace)
}

// ownTermination returns the recorded termination that concerns only the container with ID id, and
// not its whole pod. ok is false if there is none.
func (f *facts) ownTermination(id string) (budget stopBudget, ok bool) {
	e := f.in.History.Terminations[id]
	return stopBudget{e.Since, e.Grace, e.Why, e.WillRestart, e.HasFailedProbe}, !e.Since.IsZero()
}

// stopForOwnReason stops a container for a reason that does not concern its whole pod; see
// beginStop.
func (f *facts) stopForOwnReason(d *Decision, m *containerFacts, grace time.Duration, why string) {
	f.beginStop(d, m, stopBudget{grace: grace, why: why})
}

// beginStop stops a container, or continues its termination. If the termination has not begun,
// beginStop records the current time as its start, and the values in budget. The grace period begins
// at this time, so that it includes the duration of the preStop hook.
func (f *facts) beginStop(d *Decision, m *containerFacts, budget stopBudget) {
	t, hasBegun := f.ownTermination(m.last.ID)
	if !hasBegun {
		t = budget
		t.since = f.in.Now
		e := f.in.History.Terminations[m.last.ID]
		e.Since, e.Grace, e.Why, e.WillRestart, e.HasFailedProbe = t.since, t.grace, t.why, t.willRestart, t.hasFailedProbe
		d.recordTermination(m.last.ID, e)
	}
	f.stopContainer(d, m.last, t)
	f.continueReadiness(m, d)
}

// stopContainer adds the preStop hook of container c to d or, when no hook must run any more, the
// stop of c. hookDone reports whether the stop was added.
func (f *facts) stopContainer(d *Decision, c *runtime.Container, t stopBudget) (hookDone bool) {
	if f.runPreStop(d, c, t) {
		return false
	}
	f.addCleanup(d, StopContainer{Container: c.Name, ID: c.ID, Grace: t.runtimeGrace(f.in.Now), Why: t.why, WillRestart: t.willRestart})
	return true
}

// runPreStop runs the preStop hook of a container. mustWait reports whether the stop must wait for
// the hook. It is false if there is no hook to run, if the hook is done, or if the grace period has
// passed.
func (f *facts) runPreStop(d *Decision, c *runtime.Container, t stopBudget) (mustWait bool) {
	h, remaining := RecordedPreStop(c), t.remaining(f.in.Now)
	if h == nil || remaining == 0 || c.State != runtime.Running || f.in.History.Terminations[c.ID].HookDone || f.isStopInFlight(c.ID) {
		return false
	}
	if h.Sleep != nil {
		sleep := min(GraceDuration(max(h.Sleep.Seconds, 0))-t.elapsed(f.in.Now), remaining)
		if sleep <= 0 {
			return false
		}
		d.wakeAt(f.in.Now.Add(sleep))
		return true
	}
	d.wakeAt(f.in.Now.Add(remaining))
	f.addCleanup(d, RunPreStop{Container: c.Name, ID: c.ID, Grace: remaining, IsExec: h.Exec != nil})
	return true
}

// isStopInFlight reports whether the runtime is stopping the container with ID id.
func (f *facts) isStopInFlight(id string) bool {
	_, ok := f.in.InFlight[StopContainer{ID: id}.Subject()]
	return ok
}

// terminationInPod returns the stopBudget of container c in a pod that is being stopped. It is the
// budget of the pod, unless podd has already begun to stop c alone. In that case, the grace period
// of c is not extended, and ends at the latest with the grace period of the pod. The reason is
// always the reason of the pod.
func (f *facts) terminationInPod(c *runtime.Container, pod stopBudget) stopBudget {
	budget, hasBegun := f.ownTermination(c.ID)
	if !hasBegun {
		return pod
	}
	budget.grace = min(budget.grace, budget.elapsed(f.in.Now)+pod.remaining(f.in.Now))
	budget.why = pod.why
	return budget
}

// exceedsPodGrace reports whether the grace period of the pod has passed, but the runtime is still
// stopping container c with a longer grace period. In that case the sandbox must be stopped,
// because a grace period that the runtime has begun cannot be shortened.
func (f *facts) exceedsPodGrace(d *Decision, c *runtime.Container, pod stopBudget) bool {
	budget, hasBegun := f.ownTermination(c.ID)
	if !hasBegun || !f.isStopInFlight(c.ID) {
		return false
	}
	podGrace := max(pod.remaining(f.in.Now), minGrace)
	if budget.remaining(f.in.Now) <= podGrace {
		return false
	}
	if f.in.Now.Sub(pod.since) >= pod.grace+minGrace {
		return true
	}
	d.wakeAt(f.in.Now.Add(podGrace))
	return false
}

// isTerminating reports whether a container runs and its own termination has begun, even if the
// reason for the termination does not apply any more.
func isTerminating(f *facts, m *containerFacts) bool {
	if !m.hasState(runtime.Running) {
		return false
	}
	_, hasBegun := f.ownTermination(m.last.ID)
	return hasBegun
}

func continueTermination(f *facts, m *containerFacts, d *Decision, s *Step) {
	t, _ := f.ownTermination(m.last.ID)
	s.Why = t.why
	f.stopForOwnReason(d, m, t.grace, t.why)
}

// postStart returns the state of the postStart hook of m.last.
func (m *containerFacts) postStart() PostStartState {
	if m.last == nil || m.history.PostStart.Attempt != m.last.Attempt {
		return PostStartState{}
	}
	return m.history.PostStart
}

// isHookPending reports whether the postStart hook of m is not done or has failed, so that m does
// not count as started.
func (f *facts) isHookPending(m *containerFacts) bool {
	return m.postStart().IsPending(m.spec, m.last, f.in.Now)
}

func hasHookFailed(_ *facts, m *containerFacts) bool {
	return m.hasState(runtime.Running) && m.postStart().Failed
}

// stopFailedHook stops a container after its postStart hook has failed, so that it is restarted.
func stopFailedHook(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why, s.Reason, s.NeedsUser = hookText(m.postStart()), "PostStartHookError", true
	f.stopForOwnReason(d, m, graceOf(f.current), s.Why)
}

func hookText(h PostStartState) string { return "postStart hook failed: " + h.Message }

func isPostStartPending(f *facts, m *containerFacts) bool {
	return m.hasState(runtime.Running) && f.isHookPending(m)
}

func runPostStart(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why = "its postStart hook is running"
	h := m.spec.Lifecycle.PostStart
	if h.Sleep != nil {
		d.wakeAt(f.in.Now.Add(m.postStart().remaining(m.spec, m.last, f.in.Now)))
		return
	}
	f.addCleanup(d, RunPostStart{Container: m.spec.Name, ID: m.last.ID, Attempt: m.last.Attempt, IsExec: h.Exec != nil})
}

// blocksNext reports whether regular container m prevents the start of the containers after it. The
// containers of a pod are started in order. Before the next container starts, the postStart hook of
// m must be done. If m cannot start, it does not block the containers after it.
func (f *facts) blocksNext(m *containerFacts) bool {
	if !HasPostStart(m.spec) || f.isCompleted(m) {
		return false
	}
	if f.isStarting(m) || m.hasState(runtime.Running) && f.isHookPending(m) {
		return true
	}
	fails := m.history.StartFailure.Message != "" || m.history.Image.Failure.Message != ""
	return (m.last == nil || m.hasState(runtime.Created)) && !fails
}
