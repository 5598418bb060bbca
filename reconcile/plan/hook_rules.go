package plan

import (
	"time"

	"podd/runtime"
)

// term is how long an end may take: the hook and the stop share it.
type term struct {
	since time.Time
	grace time.Duration
	why   string
	again bool // it is to be started again however it ends
}

// passed is how much of it is used up. A beginning that is later than now is now.
func (t term) passed(now time.Time) time.Duration { return min(max(now.Sub(t.since), 0), t.grace) }

func (t term) left(now time.Time) time.Duration { return t.grace - t.passed(now) }

// forStop is what a runtime is given: the rest, and no less than two seconds
// unless there was no grace at all.
func (t term) forStop(now time.Time) time.Duration {
	if t.grace == 0 {
		return 0
	}
	return max(t.left(now), minGrace)
}

// own is the end of a container by a reason of its own, as it is remembered.
func (f *facts) own(id string) (term, bool) {
	e := f.in.History.Endings[id]
	return term{e.Since, e.Grace, e.Why, e.Again}, !e.Since.IsZero()
}

// end stops a container by a reason of its own, and remembers since when: what
// its hook has used up is not given to it again.
func (f *facts) end(d *Decision, m *member, grace time.Duration, why string) {
	f.endOwn(d, m, term{grace: grace, why: why})
}

func (f *facts) endOwn(d *Decision, m *member, began term) {
	t, known := f.own(m.last.ID)
	if !known {
		t = began
		t.since = f.in.Now
		e := f.in.History.Endings[m.last.ID]
		e.Since, e.Grace, e.Why, e.Again = t.since, t.grace, t.why, t.again
		d.ending(m.last.ID, e)
	}
	f.endContainer(d, m.last, t)
	f.askOn(m, d)
}

// endContainer has the preStop hook made, then the container stopped, and tells
// which it is: told is that of the stop.
func (f *facts) endContainer(d *Decision, c *runtime.Container, t term) (told bool) {
	if f.hooks(d, c, t) {
		return false
	}
	f.clean(d, StopContainer{Container: c.Name, ID: c.ID, Grace: t.forStop(f.in.Now), Why: t.why, Again: t.again})
	return true
}

// hooks tells whether the preStop hook keeps the container from being told to
// stop, and has it made. A hook that is not over when the grace is is given up.
func (f *facts) hooks(d *Decision, c *runtime.Container, t term) bool {
	h, left := PreStopOf(c), t.left(f.in.Now)
	if h == nil || left == 0 || c.State != runtime.Running || f.in.History.Endings[c.ID].Hooked || f.stopping(c.ID) {
		return false
	}
	if h.Sleep != nil {
		rest := min(Grace(max(h.Sleep.Seconds, 0))-t.passed(f.in.Now), left)
		if rest <= 0 {
			return false
		}
		d.wakeAt(f.in.Now.Add(rest))
		return true
	}
	d.wakeAt(f.in.Now.Add(left))
	f.clean(d, PreStop{Container: c.Name, ID: c.ID, Grace: left, Exec: h.Exec != nil})
	return true
}

// stopping: the runtime was told, and the hook is over.
func (f *facts) stopping(id string) bool {
	_, told := f.in.InFlight[StopContainer{ID: id}.Subject()]
	return told
}

// joined is the end of a container of a pod that ends, from now on: a grace only
// shrinks.
func (f *facts) joined(c *runtime.Container, pod term) term {
	own, known := f.own(c.ID)
	if !known {
		return pod
	}
	own.grace = min(own.grace, own.passed(f.in.Now)+pod.left(f.in.Now))
	own.why = pod.why
	return own
}

// overstays: the runtime was told of a grace that its pod does not have. It
// cannot be told otherwise, but the end of the sandbox ends the container too.
func (f *facts) overstays(d *Decision, c *runtime.Container, pod term) bool {
	own, known := f.own(c.ID)
	if !known || !f.stopping(c.ID) {
		return false
	}
	rest := max(pod.left(f.in.Now), minGrace)
	if own.left(f.in.Now) <= rest {
		return false
	}
	if f.in.Now.Sub(pod.since) >= pod.grace+minGrace {
		return true
	}
	d.wakeAt(f.in.Now.Add(rest))
	return false
}

// beingEnded: its end has begun, though what began it may be forgotten.
func beingEnded(f *facts, m *member) bool {
	if !m.is(runtime.Running) {
		return false
	}
	_, known := f.own(m.last.ID)
	return known
}

func goOnEnding(f *facts, m *member, d *Decision, s *Step) {
	t, _ := f.own(m.last.ID)
	s.Why = t.why
	f.end(d, m, t.grace, t.why)
}

// postStart is the hook of the container that m is now.
func (m *member) postStart() Hook {
	if m.last == nil || m.hist.PostStart.Attempt != m.last.Attempt {
		return Hook{}
	}
	return m.hist.PostStart
}

func (f *facts) hookPending(m *member) bool { return m.postStart().Pending(m.spec, m.last, f.in.Now) }

func hookFailed(_ *facts, m *member) bool { return m.is(runtime.Running) && m.postStart().Failed }

// stopFailedHook: what has not started as it should is started anew.
func stopFailedHook(f *facts, m *member, d *Decision, s *Step) {
	s.Why, s.Reason, s.Problem = hookText(m.postStart()), "PostStartHookError", true
	f.end(d, m, graceOf(f.cur), s.Why)
}

func hookText(h Hook) string { return "postStart hook failed: " + h.Message }

func hookUnderWay(f *facts, m *member) bool { return m.is(runtime.Running) && f.hookPending(m) }

func makePostStart(f *facts, m *member, d *Decision, s *Step) {
	s.Why = "its postStart hook is under way"
	h := m.spec.Lifecycle.PostStart
	if h.Sleep != nil {
		d.wakeAt(f.in.Now.Add(m.postStart().rest(m.spec, m.last, f.in.Now)))
		return
	}
	f.clean(d, PostStart{Container: m.spec.Name, ID: m.last.ID, Attempt: m.last.Attempt, Exec: h.Exec != nil})
}

// holdsUp: the containers of a pod are started in their order, and one with a
// postStart hook lets the next one start when that is over. What cannot start
// holds nobody up.
func (f *facts) holdsUp(m *member) bool {
	if !HasPostStart(m.spec) || f.completed(m) {
		return false
	}
	if f.starting(m) || m.is(runtime.Running) && f.hookPending(m) {
		return true
	}
	fails := m.hist.Start.Message != "" || m.hist.Image.Failure.Message != ""
	return (m.last == nil || m.is(runtime.Created)) && !fails
}
