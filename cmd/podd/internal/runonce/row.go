package runonce

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
)

// A rowState is the result of a pod or container in a row.
type rowState string

const (
	rowOK      rowState = "ok"
	rowFailed  rowState = "FAIL"
	rowSkipped rowState = "--" // stopped when the run ended, or never started
)

// A resultRow is a line of the summary: a pod, or a container that made a pod fail.
type resultRow struct {
	Namespace, Pod string // names as in the manifest
	Container      string // "" for the pod as a whole
	// Name is the name of the pod, followed by the name of the container if there is one.
	Name  string
	State rowState
	// Text describes the result in one line. Quote follows Text: it is the last line of output of the
	// container with a colon and quotation marks, or "".
	Text, Quote string
	// Duration is the time until the pod finished, was ready or timed out. It may be zero.
	Duration time.Duration
	// Exit is the last exit of the container; nil for a pod.
	Exit *plan.Exit
	// Position is the position of the pod in its file.
	Position string
	// LastLines contains the last lines of output of the container or, for a pod, of all its
	// containers. If the pod has several containers, each line is prefixed by the name of its
	// container.
	LastLines []string
}

// description returns the result in one line.
func (r *resultRow) description() string { return r.Text + r.Quote }

// A rowBuilder creates the rows of a result.
type rowBuilder struct {
	verdict   verdict
	startTime time.Time
	now       time.Time
	// lastLines returns the last lines of output of a container.
	lastLines func(p *runPod, container string) []string
}

// rows returns the rows in the order of the pods.
func (s *rowBuilder) rows(pods []runPod) []resultRow {
	var out []resultRow
	for i := range pods {
		for _, r := range s.podRows(&pods[i]) {
			// Remove the suffix of the run from Text, because podd and the runtime write the full
			// name of the pod in their texts. Quote stays as the container wrote it.
			r.Text = withoutSuffix(r.Text, pods[i].Desired.NameSuffix)
			out = append(out, r)
		}
	}
	return out
}

// newRow returns a row for the pod as a whole.
func (s *rowBuilder) newRow(p *runPod, state rowState, text string) resultRow {
	manifestKey := p.Desired.ManifestKey()
	return resultRow{
		Namespace: manifestKey.Namespace, Pod: manifestKey.Name, Name: p.Name,
		State: state, Text: text, Position: p.Desired.Origin.String(),
	}
}

// podRows returns the rows of a pod. The cases are tried in order, and the first case that applies
// determines the rows.
func (s *rowBuilder) podRows(p *runPod) []resultRow {
	isTimedOut := s.verdict.Outcome == outcomeTimedOut
	elapsed := formatDuration(s.now.Sub(s.startTime))
	skippedRow := func(text string) []resultRow { return []resultRow{s.newRow(p, rowSkipped, text)} }
	switch t := s.verdict.Failure; {
	case t.Pod != nil && t.Pod.Desired == p.Desired:
		return []resultRow{s.failureRow(p, t)}
	case p.hasFinished() && p.Report.Finished.Failed:
		return s.failedRows(p)
	case p.hasFinished():
		return []resultRow{s.succeededRow(p)}
	case p.isLongRunning() && !p.ReadyAt.IsZero():
		r := s.newRow(p, rowOK, "")
		r.Duration = p.ReadyAt.Sub(s.startTime)
		r.Text = "ready in " + formatDuration(r.Duration) + restartText(p) + ", stopped"
		r.LastLines = s.lastOutput(p)
		return []resultRow{r}
	case p.Report == nil:
		return skippedRow("not started")
	case isTimedOut && p.isLongRunning():
		return []resultRow{s.timedOutRow(p, elapsed)}
	case isTimedOut && p.runningContainer() != "":
		r := s.newRow(p, rowFailed, "still running after "+elapsed)
		r.Duration = s.now.Sub(s.startTime)
		r.LastLines = s.lastLines(p, p.runningContainer())
		r.Quote = quoteLastLine(r.LastLines)
		return []resultRow{r}
	case isTimedOut:
		return []resultRow{s.timedOutRow(p, elapsed)}
	case p.isBlocked():
		return skippedRow("not started" + waitReasonSuffix(p))
	case p.isLongRunning():
		return skippedRow("stopped before it was ready")
	}
	return skippedRow("stopped before it ended")
}

// timedOutRow returns the row of a pod that was not ready or did not run when the timeout passed.
// The parameter timeout is the formatted timeout.
func (s *rowBuilder) timedOutRow(p *runPod, timeout string) resultRow {
	for _, m := range p.containers() {
		if n := m.crashCount(); n > 0 && m.kind != plan.KindSidecar {
			r := s.containerRow(p, &m)
			r.Duration = s.now.Sub(s.startTime)
			r.Text = fmt.Sprintf("crashed %s within %s, last: %s", formatTimes(n), timeout, r.Text)
			return r
		}
	}
	text := "did not run within " + timeout
	if p.isLongRunning() {
		text = "not ready after " + timeout
	}
	r := s.newRow(p, rowFailed, text+waitReasonSuffix(p))
	r.Duration = s.now.Sub(s.startTime)
	return r
}

// runningContainer returns the name of a running container, or "" if none is running. It
// prefers a regular container.
func (p *runPod) runningContainer() string {
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

// waitReasonSuffix returns a colon and the reason why the pod is waiting, or "" without a reason.
func waitReasonSuffix(p *runPod) string {
	d := &p.Report.Decision
	if d.Why != "" {
		return ": " + d.Why
	}
	for _, s := range d.Steps {
		if s.NeedsUser && s.Why != "" {
			return ": " + s.Container + ": " + s.Why
		}
	}
	return ""
}

// restartText returns the number of restarts of the pod, or "" if there were none.
func restartText(p *runPod) string {
	n := 0
	for _, m := range p.containers() {
		n += m.crashCount()
	}
	if n == 0 {
		return ""
	}
	return ", restarted " + formatTimes(n)
}

// succeededRow returns the row of a pod that succeeded. Its duration is the time from the
// first start to the last exit of a container.
func (s *rowBuilder) succeededRow(p *runPod) resultRow {
	var firstStart, lastExit time.Time
	attempt := uint32(0)
	for _, m := range p.containers() {
		if m.exit == nil || m.kind == plan.KindSidecar {
			continue
		}
		if firstStart.IsZero() || m.exit.StartedAt.Before(firstStart) {
			firstStart = m.exit.StartedAt
		}
		if m.exit.FinishedAt.After(lastExit) {
			lastExit = m.exit.FinishedAt
		}
		attempt = max(attempt, m.exit.Attempt)
	}
	r := s.newRow(p, rowOK, "")
	r.Duration = max(lastExit.Sub(firstStart), 0)
	r.Text = "exit 0 in " + formatDuration(r.Duration)
	r.LastLines = s.lastOutput(p)
	if attempt > 0 {
		r.Text += fmt.Sprintf(", on attempt %d", attempt+1)
	}
	return r
}

// lastOutput returns the last lines that the containers of a pod have written.
func (s *rowBuilder) lastOutput(p *runPod) []string {
	var lines []string
	members := p.containers()
	for _, m := range members {
		for _, line := range s.lastLines(p, m.spec.Name) {
			if len(members) > 1 {
				line = m.spec.Name + " | " + line
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// failedRows returns a row for each container that failed. If the pod was evicted or exceeded its
// deadline, or if no container failed, failedRows returns one row for the pod.
func (s *rowBuilder) failedRows(p *runPod) []resultRow {
	var out []resultRow
	if finished := p.Report.Finished; finished.Reason == plan.ReasonDeadlineExceeded || finished.Reason == plan.ReasonEvicted {
		r := s.newRow(p, rowFailed, finished.Reason+": "+finished.Message)
		r.Duration = max(finished.At.Sub(s.startTime), 0)
		return []resultRow{r}
	}
	for _, m := range p.failedContainers() {
		out = append(out, s.containerRow(p, &m))
	}
	if len(out) == 0 {
		out = append(out, s.newRow(p, rowFailed, p.Report.Finished.Message))
	}
	return out
}

// containerRow returns the row of a container that failed.
func (s *rowBuilder) containerRow(p *runPod, m *container) resultRow {
	r := s.newRow(p, rowFailed, "")
	r.Container, r.Exit = m.spec.Name, m.exit
	r.Name = p.Name + "/" + m.spec.Name
	r.LastLines = s.lastLines(p, m.spec.Name)
	r.Duration = runDuration(m.exit)
	r.Text, r.Quote = describeExit(p, m, r.LastLines)
	return r
}

// failureRow returns the row of the pod or container that cannot succeed.
func (s *rowBuilder) failureRow(p *runPod, t podFailure) resultRow {
	if t.Exit != nil {
		for _, m := range p.containers() {
			if m.spec.Name == t.Container {
				r := s.containerRow(p, &m)
				r.Text = t.Why + ", last: " + r.Text
				return r
			}
		}
	}
	r := s.newRow(p, rowFailed, t.Why)
	if t.Container != "" {
		r.Container, r.Name = t.Container, p.Name+"/"+t.Container
	}
	return r
}
