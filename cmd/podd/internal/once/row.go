package once

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
)

// State is how something of a run did.
type State string

// The states.
const (
	OK      State = "ok"
	Failed  State = "FAIL"
	Skipped State = "--" // ended by the end of the run, or never started
)

// Row is one line of the summary: a pod, or a container by which one failed.
type Row struct {
	Namespace, Pod string // as the user wrote them
	Container      string // "" for the pod as a whole
	// Name is what the row is called: the pod, and the container with it.
	Name  string
	State State
	// Text says how it did, in one line.
	Text string
	// Took is how long it ran, or took to be ready, or had for either when the time
	// was up; zero for none of these.
	Took time.Duration
	// Exit is how the container ended; nil for a pod as a whole.
	Exit *plan.Exit
	// Place is where the user wrote the pod.
	Place string
	// Last are the last lines of output: of what failed, or of the containers of a
	// pod that did not, each line after its container where there are several.
	Last []string
}

// scene is what rows are made from.
type scene struct {
	verdict Verdict
	began   time.Time
	now     time.Time
	// last has the last lines a container wrote.
	last func(p *Pod, container string) []string
}

// rows say how each pod did, in the order of the pods.
func (s *scene) rows(pods []Pod) []Row {
	var out []Row
	for i := range pods {
		for _, r := range s.of(&pods[i]) {
			// Decisions and runtimes speak of the pod by its full name.
			r.Text = shown(r.Text, pods[i].Wanted.Suffix)
			out = append(out, r)
		}
	}
	return out
}

func (s *scene) row(p *Pod, state State, text string) Row {
	short := p.Wanted.Short()
	return Row{
		Namespace: short.Namespace, Pod: short.Name, Name: p.Name,
		State: state, Text: text, Place: p.Wanted.Origin.String(),
	}
}

// of is an ordered table; the first match wins.
func (s *scene) of(p *Pod) []Row {
	timedOut := s.verdict.Outcome == TimedOut
	took := words(s.now.Sub(s.began))
	one := func(state State, text string) []Row { return []Row{s.row(p, state, text)} }
	switch t := s.verdict.Trouble; {
	case t.Pod != nil && t.Pod.Wanted == p.Wanted:
		return []Row{s.troubled(p, t)}
	case p.ended() && p.Report.Finished.Failed:
		return s.failures(p)
	case p.ended():
		return []Row{s.succeeded(p)}
	case p.goesOn() && !p.ReadyAt.IsZero():
		r := s.row(p, OK, "")
		r.Took = p.ReadyAt.Sub(s.began)
		r.Text = "ready in " + words(r.Took) + restarts(p) + ", stopped"
		r.Last = s.output(p)
		return []Row{r}
	case p.Report == nil:
		return one(Skipped, "not started")
	case timedOut && p.goesOn():
		return []Row{s.late(p, took)}
	case timedOut && p.running() != "":
		r := s.row(p, Failed, "still ran after "+took)
		r.Took = s.now.Sub(s.began)
		r.Last = s.last(p, p.running())
		r.Text += quoteLast(r.Last)
		return []Row{r}
	case timedOut:
		return []Row{s.late(p, took)}
	case p.goesOn():
		return one(Skipped, "stopped before it was ready")
	}
	return one(Skipped, "stopped before it ended")
}

// late is the row of a pod that was not ready, or did not run, when the time
// was up.
func (s *scene) late(p *Pod, took string) Row {
	for _, m := range p.members() {
		if n := m.crashes(); n > 0 && m.kind != plan.Sidecar {
			r := s.failed(p, &m)
			r.Took = s.now.Sub(s.began)
			r.Text = fmt.Sprintf("crashed %s within %s, last: %s", times(n), took, r.Text)
			return r
		}
	}
	text := "did not run within " + took
	if p.goesOn() {
		text = "not ready after " + took
	}
	r := s.row(p, Failed, text+waits(p))
	r.Took = s.now.Sub(s.began)
	return r
}

// running is a container of the pod that runs, a regular one if any does; ""
// for none.
func (p *Pod) running() string {
	if p.Report.Pod == nil {
		return ""
	}
	st := &p.Report.Pod.Status
	for _, list := range [][]v1.ContainerStatus{st.ContainerStatuses, st.InitContainerStatuses} {
		for _, c := range list {
			if c.State.Running != nil {
				return c.Name
			}
		}
	}
	return ""
}

// waits is what the pod waits for, after a colon; "" for nothing worth telling.
func waits(p *Pod) string {
	d := &p.Report.Decision
	if d.Why != "" {
		return ": " + d.Why
	}
	for _, s := range d.Steps {
		if s.Problem && s.Why != "" {
			return ": " + s.Container + ": " + s.Why
		}
	}
	return ""
}

// restarts is how often containers of it were started again.
func restarts(p *Pod) string {
	n := 0
	for _, m := range p.members() {
		n += m.crashes()
	}
	if n == 0 {
		return ""
	}
	return ", restarted " + times(n)
}

// succeeded: the time is from the first start to the last end.
func (s *scene) succeeded(p *Pod) Row {
	var from, to time.Time
	again := uint32(0)
	for _, m := range p.members() {
		if m.exit == nil || m.kind == plan.Sidecar {
			continue
		}
		if from.IsZero() || m.exit.StartedAt.Before(from) {
			from = m.exit.StartedAt
		}
		if m.exit.FinishedAt.After(to) {
			to = m.exit.FinishedAt
		}
		again = max(again, m.exit.Attempt)
	}
	r := s.row(p, OK, "")
	r.Took = max(to.Sub(from), 0)
	r.Text = "exit 0 in " + words(r.Took)
	r.Last = s.output(p)
	if again > 0 {
		r.Text += fmt.Sprintf(", on attempt %d", again+1)
	}
	return r
}

// output is what the pod's containers wrote last.
func (s *scene) output(p *Pod) []string {
	var all []string
	members := p.members()
	for _, m := range members {
		for _, line := range s.last(p, m.spec.Name) {
			if len(members) > 1 {
				line = m.spec.Name + " | " + line
			}
			all = append(all, line)
		}
	}
	return all
}

// failures has a row for each container that failed.
func (s *scene) failures(p *Pod) []Row {
	var out []Row
	if fin := p.Report.Finished; fin.Reason == plan.DeadlineExceeded {
		r := s.row(p, Failed, fin.Reason+": "+fin.Message)
		r.Took = max(fin.At.Sub(s.began), 0)
		return []Row{r}
	}
	for _, m := range p.failing() {
		out = append(out, s.failed(p, &m))
	}
	if len(out) == 0 {
		out = append(out, s.row(p, Failed, p.Report.Finished.Message))
	}
	return out
}

func (s *scene) failed(p *Pod, m *member) Row {
	r := s.row(p, Failed, "")
	r.Container, r.Exit = m.spec.Name, m.exit
	r.Name = p.Name + "/" + m.spec.Name
	r.Last = s.last(p, m.spec.Name)
	r.Took = ran(m.exit)
	r.Text = explain(p, m, r.Last)
	return r
}

func (s *scene) troubled(p *Pod, t Trouble) Row {
	if t.Exit != nil {
		for _, m := range p.members() {
			if m.spec.Name == t.Container {
				r := s.failed(p, &m)
				r.Text = t.Why + ", last: " + r.Text
				return r
			}
		}
	}
	r := s.row(p, Failed, t.Why)
	if t.Container != "" {
		r.Container, r.Name = t.Container, p.Name+"/"+t.Container
	}
	return r
}
