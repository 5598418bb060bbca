package plan

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Phase is the phase of a pod that a pod rule chooses; see the diagram in the package comment.
type Phase string

// The phases of a pod.
const (
	PhaseHold      Phase = "hold"      // nothing is changed, because not all sources were read
	PhaseWait      Phase = "wait"      // podd waits for a condition; running containers keep running
	PhaseStop      Phase = "stop"      // an earlier version or a pod of another agent is stopped
	PhasePrepare   Phase = "prepare"   // the volumes and the sandbox are created
	PhaseInit      Phase = "init"      // the init containers run
	PhaseRun       Phase = "run"       // the regular containers run
	PhaseWindDown  Phase = "wind down" // the pod has finished; its sidecars and its sandbox are stopped
	PhaseCleanedUp Phase = "rest"      // the pod has finished or was removed, and nothing of it runs
)

// A Decision contains the actions that should be in progress for a pod now, with the rules that
// chose them and the reasons.
type Decision struct {
	Phase Phase
	// Rule is the pod rule that applies.
	Rule RuleID
	// Why is the reason for the decision about this pod; it may be "". WhyRule is the additional
	// rule that has set Why, or "" if Rule has set it.
	Why     string
	WhyRule RuleID
	// NeedsUser reports whether a user must act. Why describes the problem.
	NeedsUser bool
	// BlockedByPods reports whether the pod waits for reservations of other pods; see
	// Verdict.BlockedByPods.
	BlockedByPods bool
	// Reason is the reason in the status of the whole pod; "" if there is none.
	Reason string
	// Failure is the failed operation of the pod that will be retried; zero if there is none.
	Failure Failure
	Actions []Action
	// Steps contains the decision for each container, in the order of the manifest.
	Steps []Step
	// WakeAt is when Next must be called again if nothing happens; zero means never.
	WakeAt time.Time
	// ProbeAt is when the next attempt of a probe is due; zero if there is none. It is separate
	// from WakeAt, so that WithoutProbes can omit it when decisions are compared.
	ProbeAt time.Time
	// Releasing reports whether reservations of an earlier version are being released, or would be
	// released if the newer version was admitted.
	Releasing bool
	// UseSuccessor reports whether Successor replaces Desired now. The worker makes Successor the
	// new Desired and decides again.
	UseSuccessor bool
	// CancelStarts reports whether the pod is stopped while containers are being started. The
	// worker cancels these starts, and removes the starts that have not called the runtime from
	// InFlight.
	CancelStarts bool
	// Resume reports whether Desired runs again after its eviction, or after the end of the node
	// shutdown that stopped it.
	// The worker removes History.Finished and decides again.
	Resume bool
	// OverdueUID is the UID of a pod that the node has evicted, preempted or stopped for its shutdown, and
	// that still runs long after its grace period; "" if there is none.
	OverdueUID types.UID
	// FullyRemoved reports whether the pod is not desired, and no sandbox, directory or action of
	// its name exists any more.
	FullyRemoved bool
	// Finished is the end of the pod that the worker must record after it has started the
	// actions; nil if there is no new end. A failed write is retried.
	Finished *PodEnd
	// RecordFirst reports whether the end of the pod must not be published before Finished is on
	// disk. Finished stays nil until the termination messages of the containers were read. The
	// actions do not wait for the write: they only stop containers and release volumes, and this
	// pod may be what fills the disk.
	RecordFirst bool
	// Stopping is the termination that the worker must record before it starts the actions;
	// nil if there is no new termination. The actions are started even if the write fails.
	Stopping *SandboxTermination
	// Terminations contains the terminations of containers, by container ID, that the worker
	// must record before it starts the actions, as with Stopping; nil if there are none.
	Terminations map[string]Termination
}

// A Step is the decision for one container.
type Step struct {
	Container string
	Rule      RuleID
	Why       string
	// Reason is the waiting reason of the container, such as "CrashLoopBackOff"; "" if there is
	// none.
	Reason string
	// NeedsUser reports whether a user must act.
	NeedsUser bool
	// Crashes is the number of consecutive crashes that caused the back-off; 0 if there is no
	// back-off.
	Crashes int
	// Until is when the wait ends; zero if it does not depend on the time.
	Until time.Time
	// Failure is the failed pull, start or resize that will be retried; zero if there is none.
	Failure Failure
	// Probe is the kind of the probe that requires a user to act; "" if no probe does.
	Probe ProbeKind
}

// WithoutProbes returns the decision without the attempts of probes and without ProbeAt.
func (d Decision) WithoutProbes() Decision {
	d.ProbeAt = time.Time{}
	var actions []Action
	for _, a := range d.Actions {
		if _, ok := a.(RunProbe); !ok {
			actions = append(actions, a)
		}
	}
	d.Actions = actions
	return d
}

// NextWake returns the earlier of WakeAt and ProbeAt; zero means never.
func (d Decision) NextWake() time.Time {
	if d.WakeAt.IsZero() || !d.ProbeAt.IsZero() && d.ProbeAt.Before(d.WakeAt) {
		return d.ProbeAt
	}
	return d.WakeAt
}

// addAction adds an action unless the decision contains an action with the same subject.
func (d *Decision) addAction(a Action) {
	for _, b := range d.Actions {
		if a.Subject() == b.Subject() {
			return
		}
	}
	d.Actions = append(d.Actions, a)
}

// explainEdit sets Why to a message for users: the new version cannot start yet, and the earlier
// version keeps running. reason is the reason why the new version cannot start.
func (d *Decision) explainEdit(reason string) {
	d.Why = "the new version of the pod cannot start yet: " + reason + "; the earlier version keeps running"
}

// IsEditWaiting reports whether Why explains that the newest version cannot replace the running
// version yet.
func (d *Decision) IsEditWaiting() bool {
	return d.WhyRule == "" && d.Rule == RuleKeepEarlierVersion || d.WhyRule == RuleEditWaits || d.WhyRule == RuleEditDuringShutdown
}

// recordTermination adds the termination of the container with ID id.
func (d *Decision) recordTermination(id string, e Termination) {
	if d.Terminations == nil {
		d.Terminations = map[string]Termination{}
	}
	d.Terminations[id] = e
}

// wakeAt sets WakeAt to the earlier of WakeAt and t.
func (d *Decision) wakeAt(t time.Time) {
	if !t.IsZero() && (d.WakeAt.IsZero() || t.Before(d.WakeAt)) {
		d.WakeAt = t
	}
}

// probeAt sets ProbeAt to the earlier of ProbeAt and t.
func (d *Decision) probeAt(t time.Time) {
	if d.ProbeAt.IsZero() || t.Before(d.ProbeAt) {
		d.ProbeAt = t
	}
}

// String returns one line for the pod rule, each step and each action.
func (d Decision) String() string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, "") + "\n") }
	line("pod: ", string(d.Rule), " -> ", string(d.Phase), inParentheses(d.Why))
	for _, s := range d.Steps {
		line("  ", s.Container, ": ", string(s.Rule), " -> ", s.Rule.Verb(), inParentheses(s.Why))
	}
	for _, a := range d.Actions {
		line("  > ", a.String())
	}
	if d.FullyRemoved {
		line("  done")
	}
	return b.String()
}

// inParentheses returns text in parentheses; "" if text is "".
func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
