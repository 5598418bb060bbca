package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/printer"
	"podd/reconcile/plan"
	"podd/server"
	kubetable "podd/server/kube/table"
)

// mainStep returns the step that explains the state of the pod best. A step is the decision about
// one container. A step with a problem takes precedence over a step that waits until a time. Both
// take precedence over a step with a reason. mainStep returns nil if there is no such step, if the
// pod is terminating, or if a reason applies to the whole pod.
func mainStep(p *server.PodView) *server.DecisionView {
	if p.Why != "" || p.Pod.DeletionTimestamp != nil {
		return nil
	}
	for _, matches := range []func(server.DecisionView) bool{
		func(s server.DecisionView) bool { return s.NeedsUser },
		func(s server.DecisionView) bool { return !s.Until.IsZero() },
		func(s server.DecisionView) bool { return s.Why != "" },
		func(s server.DecisionView) bool { return s.Reason != "" },
	} {
		if i := slices.IndexFunc(p.Decisions, matches); i >= 0 {
			return &p.Decisions[i]
		}
	}
	return nil
}

// stateText returns the state of a pod and the reason for this state, for the headline of the pod.
// step is the result of mainStep.
func (w *explainer) stateText(p *server.PodView, step *server.DecisionView) string {
	reason, waitEnd := p.Why, p.NextCheck
	if step != nil {
		reason, waitEnd = stepReason(step), step.Until
	}
	cells := kubetable.NewPodCells(p.Pod, w.now)
	phase := p.Pod.Status.Phase
	switch {
	case p.Pod.DeletionTimestamp != nil:
		return withReason("is terminating", reason)
	case phase == v1.PodSucceeded:
		return withReason("succeeded", reason)
	case phase == v1.PodFailed:
		return withReason("failed", failureText(p.Pod.Status.Message, reason))
	case p.Ready:
		return withReason("runs", cmp.Or(reason, cells.Ready+" ready"))
	case waitEnd.After(w.now) && reason != "":
		return withReason("waits "+printer.FormatAge(w.now, waitEnd)+" more", reason)
	case p.Phase == "wait" || step != nil && reason != "":
		return withReason("waits", reason)
	case p.Pod.Status.Phase == v1.PodRunning:
		return withReason("runs", cmp.Or(reason, cells.Ready+" ready"))
	}
	return withReason("starts", reason)
}

// failureText joins two texts about a failed pod. The parameter message is the reason why the pod
// failed. remainingWork describes the work that remains for the pod, such as a volume that cannot
// be unmounted. Both may be "".
func failureText(message, remainingWork string) string {
	if message == "" || remainingWork == "" || message == remainingWork {
		return cmp.Or(message, remainingWork)
	}
	if strings.HasPrefix(remainingWork, strings.TrimSuffix(message, ". ")) { // it begins with the message
		return remainingWork
	}
	return message + "; " + remainingWork
}

// stepReason returns the reason of a step. The reason of a crash contains the number of
// crashes.
func stepReason(step *server.DecisionView) string {
	if step.Reason == "CrashLoopBackOff" {
		return crashText(step)
	}
	if step.Why == "" {
		return ""
	}
	return "container " + step.Container + ": " + step.Why
}

// crashText describes how often the container of a step has crashed in a row.
func crashText(step *server.DecisionView) string {
	if step.Crashes < 2 {
		return "container " + step.Container + " crashed"
	}
	return fmt.Sprintf("container %s crashed %d times in a row", step.Container, step.Crashes)
}

// ruleText returns the ID and the description of the rule that decided the state of the pod.
func (w *explainer) ruleText(p *server.PodView, step *server.DecisionView) string {
	id, container := cmp.Or(p.WhyRule, p.Rule), ""
	if step != nil {
		id = step.Rule
		if len(p.Decisions) > 1 {
			container = " (container " + step.Container + ")"
		}
	}
	if id == "" {
		return ""
	}
	return withReason(id+container, plan.RuleID(id).Sentence())
}
