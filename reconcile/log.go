package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
)

// said is what the log heard of a pod last, so that it hears a thing once.
type said struct {
	decision string
	troubles map[string]string // by container
	ready    bool
	any      bool      // an action was begun
	ran      bool      // it was ready once
	down     time.Time // since when it is not
	resizing []string  // what was given another size since the log heard of it
}

// logDecision says a decision once: when its rule or its reason is not the one
// said before; and so each container's trouble.
func (w *worker) logDecision(d plan.Decision) {
	if text := d.Rule + "\x00" + d.Why; text != w.said.decision {
		w.said.decision = text
		w.log.Log(context.Background(), decisionLevel(d), words[d.Phase], "rule", d.Rule, "why", d.Why)
	}
	troubles := map[string]string{}
	for _, s := range d.Steps {
		if !s.Problem {
			continue
		}
		text := s.Rule + "\x00" + s.Why
		if troubles[s.Container] = text; text != w.said.troubles[s.Container] {
			word := "waits"
			if s.Probe != "" {
				word = "unhealthy"
			}
			w.log.Warn(word, "container", s.Container, "rule", s.Rule, "why", s.Why)
		}
	}
	w.said.troubles = troubles
}

var words = map[plan.Phase]string{
	plan.PhaseHold: "holds", plan.PhaseWait: "waits", plan.PhaseStop: "stopping",
	plan.PhasePrepare: "preparing", plan.PhaseInit: "initializing", plan.PhaseRun: "runs",
	plan.PhaseWindDown: "finished", plan.PhaseRest: "rests",
}

// decisionLevel: what goes as planned is told by its outcome.
func decisionLevel(d plan.Decision) slog.Level {
	switch {
	case d.Problem:
		return slog.LevelWarn
	case d.Phase == plan.PhaseStop, d.Phase == plan.PhaseWindDown:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// logOutcome says that the pod runs, was found running, or is gone.
func (w *worker) logOutcome(d plan.Decision, pod *v1.Pod) {
	if d.Done {
		w.log.Info("removed")
		return
	}
	ready := pod != nil && isReady(pod)
	switch {
	case ready && !w.said.ready && !w.said.any:
		w.log.Info("adopted", "age", since(w.in.Now, w.in.History.StartTime))
	case ready && !w.said.ready && w.said.ran:
		w.log.Info("running again", "down", since(w.in.Now, w.said.down))
	case ready && !w.said.ready:
		w.log.Info("running", "took", since(w.in.Now, w.in.History.StartTime))
	case !ready && w.said.ready:
		w.said.down = w.in.Now
	}
	w.said.ready, w.said.ran = ready, w.said.ran || ready
	w.said.any = w.said.any || len(d.Actions) > 0
}

// logResize says that a pod has the size that is wanted, once all of it has.
func (w *worker) logResize() {
	if len(w.said.resizing) == 0 || w.in.Desired == nil || plan.Unsized(&w.in) {
		return
	}
	w.log.Info("resized", "what", strings.Join(w.said.resizing, ", "))
	w.said.resizing = nil
}

// resized notes for that what was given another size.
func (s *said) resized(what string) {
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

// logFact says each failure, and at debug level what went well.
func (w *worker) logFact(f fact, took time.Duration) {
	what := f.action.String()
	switch {
	case errors.Is(f.err, context.Canceled):
		w.log.Debug("gave up", "action", what)
	case f.err != nil:
		w.log.Warn("failed", "action", what, "err", f.err, "took", took.Round(time.Millisecond))
	case f.warning != "":
		w.log.Warn("did", "action", what, "but", f.warning)
	default:
		w.log.Debug("did", "action", what, "took", took.Round(time.Millisecond))
	}
}
