package plan

import (
	"strings"
	"time"
)

// Phase is the phase of a pod; see the diagram in the package comment.
type Phase string

// The phases.
const (
	PhaseHold     Phase = "hold"
	PhaseWait     Phase = "wait"
	PhaseStop     Phase = "stop"
	PhasePrepare  Phase = "prepare"
	PhaseInit     Phase = "init"
	PhaseRun      Phase = "run"
	PhaseWindDown Phase = "wind down"
	PhaseRest     Phase = "rest"
)

// A Decision is what to do now. It prints as one line per rule and action.
type Decision struct {
	Phase Phase
	// Rule is the pod rule that matched.
	Rule RuleID
	// Why is the reason for the decision about this pod, or "". WhyRule is the additional
	// rule that it comes from, or "" if it comes from Rule.
	Why     string
	WhyRule RuleID
	// Problem reports that a user must act, so Why is shown.
	Problem bool
	// Reason is a status reason for the whole pod, or "".
	Reason string
	// Failure is the failed operation of the pod that will be retried; zero: none.
	Failure Failure
	Actions []Action
	// Steps contains the decision for each container, in spec order.
	Steps []Step
	// Wake is when to decide again if nothing happens; zero: not needed.
	Wake time.Time
	// ProbeAt is when the next attempt of a probe is due; zero: none. It is separate from
	// Wake because nothing else depends on it.
	ProbeAt time.Time
	// Releasing reports that reservations of an earlier version are being released, or would
	// be if the newer version were admitted.
	Releasing bool
	// Replace reports that Successor replaces Desired now: the worker makes it Desired and
	// decides again.
	Replace bool
	// CancelStarts reports that the starts of containers in progress are canceled because
	// the pod is stopped. The worker cancels them and removes those that have not called
	// the runtime from InFlight.
	CancelStarts bool
	// Resume reports that Desired, which was stopped for a node shutdown that was canceled,
	// runs again: the worker removes its Finished and decides again.
	Resume bool
	// Done reports that nothing is left of this name.
	Done bool
	// Finished must be recorded after the actions are started; nil: nothing new. A failed
	// write is retried.
	Finished *Finished
	// RecordFirst reports that the end of the pod must not be published before Finished is
	// on disk. While messages of containers are read first, Finished is nil. The actions
	// do not wait: they only stop what still runs of the pod and release its volumes,
	// which may be what fills the disk.
	RecordFirst bool
	// Stopping must be recorded before the actions are started, which start even if that
	// fails; nil: nothing new.
	Stopping *Stopping
	// Terminations, by container ID, must be recorded in the same way; nil: nothing new.
	Terminations map[string]Termination
}

// A Step is the decision for one container.
type Step struct {
	Container string
	Rule      RuleID
	Why       string
	// Reason is a container waiting reason ("CrashLoopBackOff"), or "".
	Reason string
	// Problem reports that a user must act.
	Problem bool
	// Crashes is the number of consecutive crashes that caused the back-off; 0: no
	// back-off.
	Crashes int
	// Until is when the wait ends; zero: it does not depend on time.
	Until time.Time
	// Failure is the pull or start that will be retried; zero: none.
	Failure Failure
	// Probe is the kind of the failing probe if it is the Problem; "" otherwise.
	Probe ProbeKind
}

// WithoutProbes returns the decision without the attempts of probes, because only
// their results are of interest.
func (d Decision) WithoutProbes() Decision {
	d.ProbeAt = time.Time{}
	var rest []Action
	for _, a := range d.Actions {
		if _, ok := a.(Probe); !ok {
			rest = append(rest, a)
		}
	}
	d.Actions = rest
	return d
}

// Next returns when to decide again if nothing happens; zero: not needed.
func (d Decision) Next() time.Time {
	if d.Wake.IsZero() || !d.ProbeAt.IsZero() && d.ProbeAt.Before(d.Wake) {
		return d.ProbeAt
	}
	return d.Wake
}

// do adds an action unless there is one with the same subject already.
func (d *Decision) do(a Action) {
	for _, b := range d.Actions {
		if a.Subject() == b.Subject() {
			return
		}
	}
	d.Actions = append(d.Actions, a)
}

func (d *Decision) editWaits(why string) {
	d.Why = "the edit waits: " + why + "; the earlier version keeps running"
}

// EditWaits reports whether Why is the reason why the newest version cannot replace the
// running one.
func (d *Decision) EditWaits() bool {
	return d.WhyRule == "" && d.Rule == RuleKeepEarlierVersion || d.WhyRule == RuleEditWaits || d.WhyRule == RuleEditDuringShutdown
}

// recordTermination records the termination of a container.
func (d *Decision) recordTermination(id string, e Termination) {
	if d.Terminations == nil {
		d.Terminations = map[string]Termination{}
	}
	d.Terminations[id] = e
}

// wakeAt sets Wake to the earlier of Wake and t.
func (d *Decision) wakeAt(t time.Time) {
	if !t.IsZero() && (d.Wake.IsZero() || t.Before(d.Wake)) {
		d.Wake = t
	}
}

// probeAt sets ProbeAt to the earlier of ProbeAt and t.
func (d *Decision) probeAt(t time.Time) {
	if d.ProbeAt.IsZero() || t.Before(d.ProbeAt) {
		d.ProbeAt = t
	}
}

// String returns a transcript: the rule, each step, each action.
func (d Decision) String() string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, "") + "\n") }
	line("pod: ", string(d.Rule), " -> ", string(d.Phase), because(d.Why))
	for _, s := range d.Steps {
		line("  ", s.Container, ": ", string(s.Rule), " -> ", s.Rule.Verb(), because(s.Why))
	}
	for _, a := range d.Actions {
		line("  > ", a.String())
	}
	if d.Done {
		line("  done")
	}
	return b.String()
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}
