package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/effect"
	"podd/reconcile/plan"
)

// logState is the state of a pod as last logged, so that nothing is logged twice.
type logState struct {
	decision      string
	problems      map[string]string // by container
	ready         bool
	acted         bool      // an action was started
	wasReady      bool      // the pod was ready once
	notReadySince time.Time // when it stopped being ready
	resizing      []string  // resized since the last log record about that
}

// logDecision logs a decision if its rule or its reason changed, and likewise the problem
// of each container.
func (w *worker) logDecision(d plan.Decision) {
	if text := string(d.Rule) + "\x00" + d.Why; text != w.logged.decision {
		w.logged.decision = text
		w.log.Log(context.Background(), decisionLevel(d), phaseMessages[d.Phase], "rule", d.Rule, "why", d.Why)
	}
	troubles := map[string]string{}
	for _, s := range d.Steps {
		if !s.Problem {
			continue
		}
		text := string(s.Rule) + "\x00" + s.Why
		if troubles[s.Container] = text; text != w.logged.problems[s.Container] {
			word := "waits"
			if s.Probe != "" {
				word = "unhealthy"
			}
			w.log.Warn(word, "container", s.Container, "rule", s.Rule, "why", s.Why)
		}
	}
	w.logged.problems = troubles
}

var phaseMessages = map[plan.Phase]string{
	plan.PhaseHold: "holds", plan.PhaseWait: "waits", plan.PhaseStop: "stopping",
	plan.PhasePrepare: "preparing", plan.PhaseInit: "initializing", plan.PhaseRun: "runs",
	plan.PhaseWindDown: "finished", plan.PhaseRest: "rests",
}

// decisionLevel returns the log level of a decision. Decisions without a problem have the
// debug level, because their outcome is logged.
func decisionLevel(d plan.Decision) slog.Level {
	switch {
	case d.Problem:
		return slog.LevelWarn
	case d.Phase == plan.PhaseStop, d.Phase == plan.PhaseWindDown:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// logOutcome logs that the pod became ready, was found running, or was removed.
func (w *worker) logOutcome(d plan.Decision, pod *v1.Pod) {
	if d.Done {
		w.log.Info("removed")
		return
	}
	ready := pod != nil && isReady(pod)
	switch {
	case ready && !w.logged.ready && !w.logged.acted:
		w.log.Info("adopted", "age", since(w.in.Now, w.in.History.StartTime))
	case ready && !w.logged.ready && w.logged.wasReady:
		w.log.Info("running again", "down", since(w.in.Now, w.logged.notReadySince))
	case ready && !w.logged.ready:
		w.log.Info("running", "took", since(w.in.Now, w.in.History.StartTime))
	case !ready && w.logged.ready:
		w.logged.notReadySince = w.in.Now
	}
	w.logged.ready, w.logged.wasReady = ready, w.logged.wasReady || ready
	w.logged.acted = w.logged.acted || len(d.Actions) > 0
}

// logResize logs that a pod was resized, once all of it has the desired size.
func (w *worker) logResize() {
	if len(w.logged.resizing) == 0 || w.in.Desired == nil || plan.ResizePending(&w.in) {
		return
	}
	w.log.Info("resized", "what", strings.Join(w.logged.resizing, ", "))
	w.logged.resizing = nil
}

// resized records an object that was resized, for logResize.
func (s *logState) resized(what string) {
	if !slices.Contains(s.resizing, what) {
		s.resizing = append(s.resizing, what)
	}
}

func isReady(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func since(now, then time.Time) time.Duration {
	return max(now.Sub(then), 0).Round(10 * time.Millisecond)
}

// logResult logs a failure as a warning, and a success at debug level.
func (w *worker) logResult(f effect.Result, took time.Duration) {
	what := f.Action.String()
	switch {
	case errors.Is(f.Err, context.Canceled):
		w.log.Debug("gave up", "action", what)
	case f.Err != nil:
		w.log.Warn("failed", "action", what, "err", f.Err, "took", took.Round(time.Millisecond))
	case f.Warning != "":
		w.log.Warn("did", "action", what, "but", f.Warning)
	default:
		w.log.Debug("did", "action", what, "took", took.Round(time.Millisecond))
	}
}
