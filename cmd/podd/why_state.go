package main

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/server"
	kubetable "podd/server/kube/table"
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
		why, until = whyOf(step), step.Until
	}
	word := kubetable.WordsOf(p.Pod, w.now)
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
func whyOf(step *server.StepView) string {
	if step.Reason == "CrashLoopBackOff" {
		return crashes(step)
	}
	if step.Why == "" {
		return ""
	}
	return "container " + step.Container + ": " + step.Why
}

// crashes says how often a container ended before it was held back.
func crashes(step *server.StepView) string {
	if step.Crashes < 2 {
		return "container " + step.Container + " crashed"
	}
	return fmt.Sprintf("container %s crashed %d times in a row", step.Container, step.Crashes)
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
