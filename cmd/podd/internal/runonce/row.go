package runonce

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
)

// State is the result of a row.
type State string

// The states.
const (
	OK      State = "ok"
	Failed  State = "FAIL"
	Skipped State = "--" // stopped by the end of the run, or never started
)

// A Row is a line of the summary: a pod, or a container that made a pod fail.
type Row struct {
	Namespace, Pod string // as in the manifest
	Container      string // "" for the pod as a whole
	// Name is the pod, followed by the container if there is one.
	Name  string
	State State
	// Text describes the result in one line.
	Text string
	// Took is the duration until the end, readiness or the timeout; may be zero.
	Took time.Duration
	// Exit is the last exit of the container; nil for a pod.
	Exit *plan.Exit
	// Place is the position of the pod in its file.
	Place string
	// Last contains the last lines of output: of the failed container, or of all containers
	// of a pod, prefixed by their names if there are several.
	Last []string
}

// A rowBuilder creates the rows of a result.
type rowBuilder struct {
	verdict Verdict
	began   time.Time
	now     time.Time
	// last returns the last lines of a container.
	last func(p *Pod, container string) []string
}

// rows returns the rows in the order of the pods.
func (s *rowBuilder) rows(pods []Pod) []Row {
	var out []Row
	for i := range pods {
		for _, r := range s.podRows(&pods[i]) {
			// Decisions and errors of the runtime contain the full name of the pod.
			r.Text = withoutSuffix(r.Text, pods[i].Desired.Suffix)
			out = append(out, r)
		}
	}
	return out
}

func (s *rowBuilder) row(p *Pod, state State, text string) Row {
	short := p.Desired.Short()
	return Row{
		Namespace: short.Namespace, Pod: short.Name, Name: p.Name,
		State: state, Text: text, Place: p.Desired.Origin.String(),
	}
}

// podRows is an ordered table; the first match decides.
func (s *rowBuilder) podRows(p *Pod) []Row {
	timedOut := s.verdict.Outcome == TimedOut
	took := formatDuration(s.now.Sub(s.began))
	one := func(state State, text string) []Row { return []Row{s.row(p, state, text)} }
	switch t := s.verdict.Failure; {
	case t.Pod != nil && t.Pod.Desired == p.Desired:
		return []Row{s.failureRow(p, t)}
	case p.hasEnded() && p.Report.Finished.Failed:
		return s.failedRows(p)
	case p.hasEnded():
		return []Row{s.succeededRow(p)}
	case p.isLongRunning() && !p.ReadyAt.IsZero():
		r := s.row(p, OK, "")
		r.Took = p.ReadyAt.Sub(s.began)
		r.Text = "ready in " + formatDuration(r.Took) + restartText(p) + ", stopped"
		r.Last = s.output(p)
		return []Row{r}
	case p.Report == nil:
		return one(Skipped, "not started")
	case timedOut && p.isLongRunning():
		return []Row{s.timedOutRow(p, took)}
	case timedOut && p.runningContainer() != "":
		r := s.row(p, Failed, "still ran after "+took)
		r.Took = s.now.Sub(s.began)
		r.Last = s.last(p, p.runningContainer())
		r.Text += quoteLast(r.Last)
		return []Row{r}
	case timedOut:
		return []Row{s.timedOutRow(p, took)}
	case p.isLongRunning():
		return one(Skipped, "stopped before it was ready")
	}
	return one(Skipped, "stopped before it ended")
}

// timedOutRow returns the row of a pod that was not ready or did not run when the timeout
// passed.
func (s *rowBuilder) timedOutRow(p *Pod, took string) Row {
	for _, m := range p.containers() {
		if n := m.crashes(); n > 0 && m.kind != plan.Sidecar {
			r := s.containerRow(p, &m)
			r.Took = s.now.Sub(s.began)
			r.Text = fmt.Sprintf("crashed %s within %s, last: %s", times(n), took, r.Text)
			return r
		}
	}
	text := "did not run within " + took
	if p.isLongRunning() {
		text = "not ready after " + took
	}
	r := s.row(p, Failed, text+waitText(p))
	r.Took = s.now.Sub(s.began)
	return r
}

// runningContainer returns a container that runs, preferably a regular one, or "".
func (p *Pod) runningContainer() string {
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

// waitText returns the reason for which the pod waits, after a colon, or "".
func waitText(p *Pod) string {
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

// restartText returns the number of restarts, or "".
func restartText(p *Pod) string {
	n := 0
	for _, m := range p.containers() {
		n += m.crashes()
	}
	if n == 0 {
		return ""
	}
	return ", restarted " + times(n)
}

// succeededRow measures the time from the first start to the last exit.
func (s *rowBuilder) succeededRow(p *Pod) Row {
	var from, to time.Time
	again := uint32(0)
	for _, m := range p.containers() {
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
	r.Text = "exit 0 in " + formatDuration(r.Took)
	r.Last = s.output(p)
	if again > 0 {
		r.Text += fmt.Sprintf(", on attempt %d", again+1)
	}
	return r
}

// output returns the last lines of the pod's containers.
func (s *rowBuilder) output(p *Pod) []string {
	var all []string
	members := p.containers()
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

// failedRows returns a row for each container that failed, or one for a pod that podd stopped.
func (s *rowBuilder) failedRows(p *Pod) []Row {
	var out []Row
	if fin := p.Report.Finished; fin.Reason == plan.DeadlineExceeded || fin.Reason == plan.Evicted {
		r := s.row(p, Failed, fin.Reason+": "+fin.Message)
		r.Took = max(fin.At.Sub(s.began), 0)
		return []Row{r}
	}
	for _, m := range p.failedContainers() {
		out = append(out, s.containerRow(p, &m))
	}
	if len(out) == 0 {
		out = append(out, s.row(p, Failed, p.Report.Finished.Message))
	}
	return out
}

func (s *rowBuilder) containerRow(p *Pod, m *container) Row {
	r := s.row(p, Failed, "")
	r.Container, r.Exit = m.spec.Name, m.exit
	r.Name = p.Name + "/" + m.spec.Name
	r.Last = s.last(p, m.spec.Name)
	r.Took = runTime(m.exit)
	r.Text = explain(p, m, r.Last)
	return r
}

func (s *rowBuilder) failureRow(p *Pod, t PodFailure) Row {
	if t.Exit != nil {
		for _, m := range p.containers() {
			if m.spec.Name == t.Container {
				r := s.containerRow(p, &m)
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
