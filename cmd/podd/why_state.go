package main

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/status"
	"podd/server"
)

// decisive is the decision on a container that tells most: one with a problem,
// else one that waits for a time, else one with a reason. Nil for none.
func decisive(p *server.PodView) *server.StepView {
	if p.Why != "" || p.Pod.DeletionTimestamp != nil {
		return nil // the pod as a whole has a reason
	}
	for _, tells := range []func(server.StepView) bool{
		func(s server.StepView) bool { return s.Problem },
		func(s server.StepView) bool { return !s.Until.IsZero() },
		func(s server.StepView) bool { return s.Why != "" },
		func(s server.StepView) bool { return s.Reason != "" },
	} {
		if i := slices.IndexFunc(p.Steps, tells); i >= 0 {
			return &p.Steps[i]
		}
	}
	return nil
}

// state is the headline's verb and reason.
func (w *reasons) state(p *server.PodView, step *server.StepView) string {
	why, until := p.Why, p.Wake
	if step != nil {
		why, until = w.because(p, step), step.Until
	}
	word := status.Row(p.Pod, w.now)
	phase := p.Pod.Status.Phase
	switch {
	case p.Pod.DeletionTimestamp != nil:
		return clause("is ending", why)
	case phase == v1.PodSucceeded:
		return clause("succeeded", why)
	case phase == v1.PodFailed:
		return clause("failed", orElse(why, p.Pod.Status.Message))
	case p.Ready:
		return clause("runs", orElse(why, word.Ready+" ready"))
	case until.After(w.now) && why != "":
		return clause("waits "+since(w.now, until)+" more", why)
	case p.Phase == "wait" || step != nil && why != "":
		return clause("waits", why)
	case p.Pod.Status.Phase == v1.PodRunning:
		return clause("runs", orElse(why, word.Ready+" ready"))
	}
	return clause("starts", why)
}

// because is why a step waits. Of crashes it tells how many there were.
func (w *reasons) because(p *server.PodView, step *server.StepView) string {
	if step.Reason == "CrashLoopBackOff" {
		return w.crashes(p, step)
	}
	if step.Why == "" {
		return ""
	}
	return "container " + step.Container + ": " + step.Why
}

// crashes counts the ends of a container since its pod began.
func (w *reasons) crashes(p *server.PodView, step *server.StepView) string {
	text := "container " + step.Container + " crashed"
	all := slices.Concat(p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses)
	i := slices.IndexFunc(all, func(c v1.ContainerStatus) bool { return c.Name == step.Container })
	if i < 0 {
		return text
	}
	switch n := all[i].RestartCount + 1; n {
	case 1:
		text += " once"
	default:
		text += fmt.Sprintf(" %d times", n)
	}
	if start := p.Pod.Status.StartTime; start != nil {
		text += " in " + since(start.Time, w.now)
	}
	return text
}

// rule is the row of the plan that decided.
func (w *reasons) rule(p *server.PodView, step *server.StepView) string {
	switch {
	case step != nil && len(p.Steps) > 1:
		return "container " + step.Container + ": " + step.Rule
	case step != nil:
		return "container: " + step.Rule
	case p.Rule != "":
		return "pod: " + p.Rule
	}
	return ""
}
