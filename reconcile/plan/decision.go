package plan

import (
	"strings"
	"time"
)

// Phase is where a pod stands; see the package's picture.
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

// Decision is what to do now. It prints as one line a rule and an action.
type Decision struct {
	Phase Phase
	// Rule is the pod rule that matched; Why says it with this pod's facts.
	Rule, Why string
	// Problem says that a user has something to mend: Why is then shown.
	Problem bool
	// EditWaits says that Why is what keeps the newer version from taking over.
	EditWaits bool
	// Reason is a status reason for the pod as a whole, or "".
	Reason string
	// Failure is what the pod as a whole waits to try again; zero: nothing.
	Failure Failure
	Actions []Action
	// Steps has what was decided on each container, in spec order.
	Steps []Step
	// Wake is when to decide again if nothing happens; zero: no need.
	Wake time.Time
	// ProbeAt is when the next attempt of a probe is due; zero: none is. It is
	// apart from Wake since nothing else waits for it.
	ProbeAt time.Time
	// Yields says that what an earlier version claims is being given up, or would
	// be if the newer one were admitted.
	Yields bool
	// Succeed says that Successor takes Desired's place now: the worker makes it
	// Desired and decides again.
	Succeed bool
	// Resume says that Desired, which was ended for a shutdown of the node that was
	// cancelled, runs again: the worker forgets that end and decides again.
	Resume bool
	// Done says that nothing of this name is left to care for.
	Done bool
	// Finished and Stopping are to be remembered before the actions are started,
	// Finished durably; nil: nothing new.
	Finished *Finished
	Stopping *Stopping
	// Endings, by container ID, likewise; nil: nothing new.
	Endings map[string]Ending
}

// Step is the decision on one container.
type Step struct {
	Container string
	Rule      string
	Why       string
	// Reason is a container waiting reason ("CrashLoopBackOff"), or "".
	Reason string
	// Problem says that a user has something to mend.
	Problem bool
	// Crashes is how many ends in a row made it back off; 0: it does not.
	Crashes int
	// Until is when the wait ends by itself; zero: not by time.
	Until time.Time
	// Failure is the pull or start that is to be tried again; zero: none.
	Failure Failure
	// Probe is the kind of the probe that is the Problem; "" for none.
	Probe ProbeKind
}

// Told is the decision as others hear of it: without the attempts of probes,
// of which only the verdicts are news.
func (d Decision) Told() Decision {
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

// Next is when to decide again if nothing happens; zero: no need.
func (d Decision) Next() time.Time {
	if d.Wake.IsZero() || !d.ProbeAt.IsZero() && d.ProbeAt.Before(d.Wake) {
		return d.ProbeAt
	}
	return d.Wake
}

// do names an action, unless one of its subject is named: that goes first.
func (d *Decision) do(a Action) {
	for _, b := range d.Actions {
		if a.Subject() == b.Subject() {
			return
		}
	}
	d.Actions = append(d.Actions, a)
}

func (d *Decision) editWaits(why string) {
	d.Why, d.EditWaits = "the edit waits: "+why+"; the earlier version runs on", true
}

// ending has the end of a container remembered.
func (d *Decision) ending(id string, e Ending) {
	if d.Endings == nil {
		d.Endings = map[string]Ending{}
	}
	d.Endings[id] = e
}

// wakeAt keeps the earliest of all wakes.
func (d *Decision) wakeAt(t time.Time) {
	if !t.IsZero() && (d.Wake.IsZero() || t.Before(d.Wake)) {
		d.Wake = t
	}
}

// probeAt keeps the earliest attempt of all.
func (d *Decision) probeAt(t time.Time) {
	if d.ProbeAt.IsZero() || t.Before(d.ProbeAt) {
		d.ProbeAt = t
	}
}

// String is a transcript: the rule, each step, each action.
func (d Decision) String() string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, "") + "\n") }
	line("pod: ", d.Rule, " -> ", string(d.Phase), because(d.Why))
	for _, s := range d.Steps {
		line("  ", s.Container, ": ", s.Rule, because(s.Why))
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
