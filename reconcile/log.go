package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/condition"
	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// logState contains what the worker last logged about its pod, so that it logs nothing twice.
type logState struct {
	decision      string            // rule and reason of the last decision
	problems      map[string]string // rule and reason of the problem of each container
	isReady       bool
	hasActed      bool      // whether a decision contained an action since podd was started
	hasBeenReady  bool      // whether the pod was ever ready since podd was started
	notReadySince time.Time // when the pod became unready
	resizedParts  []string  // parts of the pod that were resized since the last log record about a resize
}

// logDecision logs decision d if its rule or reason has changed, and the problem of each container
// whose rule or reason has changed.
func (w *worker) logDecision(d plan.Decision) {
	if text := string(d.Rule) + "\x00" + d.Why; text != w.lastLog.decision {
		w.lastLog.decision = text
		w.log.Log(context.Background(), decisionLevel(d), phaseMessages[d.Phase], "rule", d.Rule, "why", d.Why)
	}
	problems := map[string]string{}
	for _, s := range d.Steps {
		if !s.NeedsUser {
			continue
		}
		text := string(s.Rule) + "\x00" + s.Why
		if problems[s.Container] = text; text != w.lastLog.problems[s.Container] {
			message := "container is waiting"
			if s.Probe != "" {
				message = "container is unhealthy"
			}
			w.log.Warn(message, "container", s.Container, "rule", s.Rule, "why", s.Why)
		}
	}
	w.lastLog.problems = problems
}

var phaseMessages = map[plan.Phase]string{
	plan.PhaseHold: "pod is not changed for now", plan.PhaseWait: "pod is waiting", plan.PhaseStop: "stopping pod",
	plan.PhasePrepare: "preparing pod", plan.PhaseInit: "initializing pod", plan.PhaseRun: "pod is running",
	plan.PhaseWindDown: "pod finished", plan.PhaseCleanedUp: "pod finished and was cleaned up",
}

// decisionLevel returns the log level of a decision. Most decisions without a problem have the
// level debug, because logPodChange logs their result.
func decisionLevel(d plan.Decision) slog.Level {
	switch {
	case d.NeedsUser:
		return slog.LevelWarn
	case d.Phase == plan.PhaseStop, d.Phase == plan.PhaseWindDown:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// logPodChange logs that the pod became ready, was adopted or was removed.
func (w *worker) logPodChange(d plan.Decision, pod *v1.Pod) {
	if d.FullyRemoved {
		w.log.Info("pod removed")
		return
	}
	ready := pod != nil && condition.IsTrue(pod.Status.Conditions, v1.PodReady)
	switch {
	case ready && !w.lastLog.isReady && !w.lastLog.hasActed:
		w.log.Info("pod adopted", "age", roundedSince(w.state.PlanInput.Now, w.state.PlanInput.History.StartTime))
	case ready && !w.lastLog.isReady && w.lastLog.hasBeenReady:
		w.log.Info("pod is ready again", "down", roundedSince(w.state.PlanInput.Now, w.lastLog.notReadySince))
	case ready && !w.lastLog.isReady:
		w.log.Info("pod is ready", "took", roundedSince(w.state.PlanInput.Now, w.state.PlanInput.History.StartTime))
	case !ready && w.lastLog.isReady:
		w.lastLog.notReadySince = w.state.PlanInput.Now
	}
	w.lastLog.isReady, w.lastLog.hasBeenReady = ready, w.lastLog.hasBeenReady || ready
	w.lastLog.hasActed = w.lastLog.hasActed || len(d.Actions) > 0
}

// logResize logs that a pod was resized. It does nothing until all containers and the cgroup of the
// pod have the desired size.
func (w *worker) logResize() {
	if len(w.lastLog.resizedParts) == 0 || w.state.PlanInput.Desired == nil || plan.IsResizePending(&w.state.PlanInput) {
		return
	}
	w.log.Info("pod resized", "parts", strings.Join(w.lastLog.resizedParts, ", "))
	w.lastLog.resizedParts = nil
}

// recordResize records the part of the pod that action a has resized, for logResize.
func (s *logState) recordResize(a plan.Action) {
	change := ""
	switch a := a.(type) {
	case plan.ResizeContainer:
		change = "container " + a.Container
	case plan.ResizePod:
		change = "pod"
	}
	if change != "" && !slices.Contains(s.resizedParts, change) {
		s.resizedParts = append(s.resizedParts, change)
	}
}

// roundedSince returns the rounded duration from start to now, for logs. It returns 0 if now is
// before start.
func roundedSince(now, start time.Time) time.Duration {
	return max(now.Sub(start), 0).Round(10 * time.Millisecond)
}

// logResult logs a failed action as a warning, and a successful action at debug level. isForDesired
// reports whether the action was for the version in force. Probes and reads of termination messages
// are not logged.
func (w *worker) logResult(f result.Result, isForDesired bool, duration time.Duration) {
	action := f.Action.String()
	switch f.Action.(type) {
	case plan.RunProbe, plan.ReadMessage:
		return
	}
	switch {
	case f.Canceled:
		w.log.Debug("action canceled", "action", action)
	case f.Err != nil:
		w.log.Warn("action failed", "action", action, "err", f.Err, "took", duration.Round(time.Millisecond))
	case f.Warning != "":
		w.log.Warn("action succeeded with a warning", "action", action, "warning", f.Warning)
	default:
		w.log.Debug("action succeeded", "action", action, "took", duration.Round(time.Millisecond))
	}
	if isForDesired && f.Err == nil {
		w.lastLog.recordResize(f.Action)
	}
}
