package once

import (
	"fmt"
	"time"

	"podd/reconcile/plan"
)

// notices are what to tell about the pod since an earlier look at it: what
// failed and is tried again, what crashed and is started again, what it waits
// for. What ends the run is left to the summary.
func (p Pod) notices(before *Pod, now time.Time) []string {
	if p.Report == nil || p.ended() {
		return nil
	}
	was := &plan.Decision{}
	if before.Report != nil {
		was = &before.Report.Decision
	}
	if _, _, over := p.trouble(now); over {
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
		if s.Failure.Count > failures(was, s.Container) {
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

// failures is how often what a container waits for had failed.
func failures(d *plan.Decision, container string) int {
	for _, s := range d.Steps {
		if s.Container == container {
			return s.Failure.Count
		}
	}
	return 0
}

// crashesSince tells of containers that ended since and are started again.
func (p *Pod) crashesSince(before *Pod) []string {
	limit := maxRetries
	if p.goesOn() {
		limit = maxCrashes
	}
	had := map[string]int{}
	for _, m := range before.members() {
		had[m.spec.Name] = m.crashes()
	}
	var out []string
	for _, m := range p.members() {
		n := m.crashes()
		if !m.again || n <= had[m.spec.Name] || m.kind == plan.Sidecar && !p.goesOn() {
			continue
		}
		out = append(out, fmt.Sprintf("%s/%s: %s after %s, starts again (%d of %d)",
			p.Name, m.spec.Name, exitWords(m.exit.Code), words(ran(m.exit)), n, limit-1))
	}
	return out
}
