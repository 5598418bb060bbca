package runonce

import (
	"fmt"
	"time"

	"podd/reconcile/plan"
)

// notices returns messages about changes since before: failures that are retried, crashes
// that are restarted, and reasons to wait. What ends the run is reported by the summary.
func (p Pod) notices(before *Pod, now time.Time) []string {
	if p.Report == nil || p.hasEnded() {
		return nil
	}
	was := &plan.Decision{}
	if before.Report != nil {
		was = &before.Report.Decision
	}
	if _, _, over := p.failure(now); over {
		return nil
	}
	d := &p.Report.Decision
	var out []string
	say := func(name, text string, until time.Time) {
		if left := until.Sub(now); left > 0 {
			text += "; next try in " + left.Round(time.Second).String()
		}
		out = append(out, plain(name+": "+text))
	}
	for _, s := range d.Steps {
		if s.Failure.Count > failureCount(was, s.Container) {
			say(p.Name+"/"+s.Container, s.Failure.Message, s.Failure.Until)
		}
	}
	switch {
	case d.Failure.Count > was.Failure.Count:
		say(p.Name, d.Failure.Message, d.Failure.Until)
	case d.Phase == plan.PhaseWait && d.Problem && d.Why != was.Why:
		say(p.Name, "waits: "+d.Why, time.Time{})
	}
	for _, c := range p.crashesSince(before) {
		out = append(out, plain(c))
	}
	return out
}

// failureCount returns the number of failures of a container's current step.
func failureCount(d *plan.Decision, container string) int {
	for _, s := range d.Steps {
		if s.Container == container {
			return s.Failure.Count
		}
	}
	return 0
}

// crashesSince returns messages about containers that have exited since before and
// restart.
func (p *Pod) crashesSince(before *Pod) []string {
	limit := maxRetries
	if p.isLongRunning() {
		limit = maxCrashes
	}
	had := map[string]int{}
	for _, m := range before.containers() {
		had[m.spec.Name] = m.crashes()
	}
	var out []string
	for _, m := range p.containers() {
		n := m.crashes()
		if !m.restarts || n <= had[m.spec.Name] || m.kind == plan.Sidecar && !p.isLongRunning() {
			continue
		}
		out = append(out, fmt.Sprintf("%s/%s: %s after %s, starts again (%d of %d)",
			p.Name, m.spec.Name, exitText(m.exit.Code), formatDuration(runTime(m.exit)), n, limit-1))
	}
	return out
}
