package runonce

import (
	"fmt"
	"time"

	"podd/cmd/podd/internal/printer"
	"podd/reconcile/plan"
)

// notices compares the state p of a pod with its previous state. It returns messages about failures
// that are retried, crashes after which a container restarts, and reasons to wait. notices omits
// failures that end the run, because the summary reports these failures. For a pod that waits for
// reservations of other pods, it returns only one message.
func (p runPod) notices(previousState *runPod, now time.Time) []string {
	if p.Report == nil || p.hasFinished() {
		return nil
	}
	previous := &plan.Decision{}
	if previousState.Report != nil {
		previous = &previousState.Report.Decision
	}
	if _, _, isFinal := p.findFailure(now, queue{lastChange: now}); isFinal {
		return nil
	}
	d := &p.Report.Decision
	var out []string
	add := func(name, text string, retryAt time.Time) {
		if wait := retryAt.Sub(now); wait > 0 {
			text += "; next try in " + wait.Round(time.Second).String()
		}
		out = append(out, withoutControlChars(name+": "+text))
	}
	for _, s := range d.Steps {
		if s.Failure.Count > failureCount(previous, s.Container) {
			add(p.Name+"/"+s.Container, s.Failure.Message, s.Failure.RetryAt)
		}
	}
	switch {
	case d.Failure.Count > previous.Failure.Count:
		add(p.Name, d.Failure.Message, d.Failure.RetryAt)
	case d.BlockedByPods && previous.BlockedByPods: // the numbers in Why change whenever another pod finishes
	case d.Phase == plan.PhaseWait && (d.NeedsUser || d.Rule == plan.RuleNotAdmitted) && d.Why != previous.Why:
		add(p.Name, "waits: "+d.Why, time.Time{})
	}
	for _, c := range p.crashesSince(previousState) {
		out = append(out, withoutControlChars(c))
	}
	return out
}

// failureCount returns how often the current step of a container has failed.
func failureCount(d *plan.Decision, container string) int {
	for _, s := range d.Steps {
		if s.Container == container {
			return s.Failure.Count
		}
	}
	return 0
}

// crashesSince returns a message for each container that has crashed again and will restart.
// previousState is the previous state of the pod.
func (p *runPod) crashesSince(previousState *runPod) []string {
	limit := maxCompletionCrashes
	if p.isLongRunning() {
		limit = maxLongRunningCrashes
	}
	previousCounts := map[string]int{}
	for _, m := range previousState.containers() {
		previousCounts[m.spec.Name] = m.crashCount()
	}
	var out []string
	for _, m := range p.containers() {
		n := m.crashCount()
		if !m.willRestart || n <= previousCounts[m.spec.Name] || m.kind == plan.KindSidecar && !p.isLongRunning() {
			continue
		}
		out = append(out, fmt.Sprintf("%s/%s: %s after %s, starts again (%d of %d)",
			p.Name, m.spec.Name, printer.FormatExitCode(m.exit.Code), formatDuration(runDuration(m.exit)), n, limit-1))
	}
	return out
}
