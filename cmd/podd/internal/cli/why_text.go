package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/manifest/wording"
	"podd/server"
)

// An explainer writes the output of podd why for a View.
type explainer struct {
	view       *server.View
	workingDir string // directory that paths are shown relative to
	now        time.Time
	// lastLogLine returns the last line of the log of a container's newest run that has exited, or
	// "".
	lastLogLine func(pod server.Key, container string) string
	events      []v1.Event // all stored events, the newest last
}

// explain returns a headline and further lines about the subject s.
func (w *explainer) explain(s subject) string {
	if s.path != "" {
		return w.explainFile(s.path)
	}
	if p := w.view.Pod(s.key); p != nil {
		return w.explainPod(p, false)
	}
	return formatHeadline(displayName(w.view, s.key)+" does not run, because podd has not read a valid version of its manifest yet") +
		w.problemLines(func(q server.ProblemView) bool { return q.Pod == s.key })
}

// explainFile explains the state of a file, its problems, and every pod in it.
func (w *explainer) explainFile(path string) string {
	f, pods := findFile(w.view, path), podsInFile(w.view, path)
	state := "none of its pods runs"
	switch {
	case f.OutdatedReason != "":
		state = outdatedText(f, pods, w.now)
	case f.Digest != "":
		state = "version of " + printer.FormatTime(f.ContentTime, w.now) + " in effect, " + printer.FormatCount(len(pods), "pod")
	}
	text := formatHeadline(paths.Shorten(path, w.workingDir)+": "+state) +
		w.problemLines(func(q server.ProblemView) bool {
			isOfPod := slices.ContainsFunc(pods, func(p *server.PodView) bool { return p.Key() == q.Pod })
			return q.Path == path && !isOfPod
		})
	for _, p := range pods {
		text += "\n" + w.explainPod(p, true)
	}
	return text
}

// explainPod explains the state of a pod: the rule, the last exits, the next actions, and the
// command that shows more. If inFile is set, it omits the state of the file, because explainFile
// already shows this state.
func (w *explainer) explainPod(p *server.PodView, inFile bool) string {
	step := mainStep(p)
	text := formatHeadline(displayName(w.view, p.Key()) + " " + w.stateText(p, step))
	text += labelledLine("rule", w.ruleText(p, step))
	if outdated := outdatedText(findFile(w.view, p.Path), []*server.PodView{p}, w.now); outdated != "" && !inFile {
		text += labelledLine("file", paths.Shorten(p.Path, w.workingDir)+": "+outdated)
	}
	text += w.problemLines(func(q server.ProblemView) bool {
		isOfFile := !inFile && q.Pod == (server.Key{}) && q.Path != "" && q.Path == p.Path
		return (isOfFile || q.Pod == p.Key()) && !isShownInHeadline(q, p)
	})
	for _, q := range p.Pulls {
		text += labelledLine("pull", q.Image+" for container "+q.Container+" since "+printer.FormatTime(q.Since, w.now)+", "+printer.FormatAge(q.Since, w.now))
	}
	for _, e := range p.LastExits {
		text += labelledLine("last", w.lastExitText(p, e))
	}
	for _, e := range w.recentWarnings(p) {
		text += labelledLine("event", w.eventText(e))
	}
	return text + labelledLine("next", w.nextText(p, step)) + labelledLine("more", w.logsCommand(p))
}

// lastExitText describes the last exit of a container and quotes its termination message or the
// last line of its log.
func (w *explainer) lastExitText(p *server.PodView, e server.ExitView) string {
	text := exitText(e)
	if len(p.Pod.Spec.Containers)+len(p.Pod.Spec.InitContainers) > 1 {
		text = e.Container + ": " + text
	}
	message := wording.FirstLine(e.Message)
	if message == "" {
		message = w.lastLogLine(p.Key(), e.Container)
	}
	if message != "" {
		text += ": " + quoteOutput(message)
	}
	return text
}

// nextText returns the next actions of a pod. If there are none and step waits until a time, it
// returns the action that podd will then retry. Otherwise it returns the time of the next check of
// the pod.
func (w *explainer) nextText(p *server.PodView, step *server.DecisionView) string {
	const maxActions = 4
	switch {
	case len(p.PlannedActions) > maxActions:
		return strings.Join(p.PlannedActions[:maxActions], "; ") + fmt.Sprintf("; %d more", len(p.PlannedActions)-maxActions)
	case len(p.PlannedActions) > 0:
		return strings.Join(p.PlannedActions, "; ")
	case step != nil && step.Until.After(w.now):
		return retryText(step) + " at " + printer.FormatTime(step.Until, w.now)
	case p.NextCheck.After(w.now):
		return "check again at " + printer.FormatTime(p.NextCheck, w.now)
	}
	return ""
}

// retryText returns the action that podd will try again after the wait of a step.
func retryText(step *server.DecisionView) string {
	switch step.Reason {
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable":
		return "pull the image of " + step.Container
	}
	return "start " + step.Container
}

// logsCommand returns the command that shows the relevant log of a pod, or "" if there is
// none.
func (w *explainer) logsCommand(p *server.PodView) string {
	podArg := podArgument(w.view, p.Key())
	hasStarted := slices.ContainsFunc(p.Pod.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.ContainerID != "" })
	switch {
	case len(p.LastExits) > 0 && !p.Ready:
		podArg += " --previous"
		if e := p.LastExits[0]; len(p.Pod.Spec.Containers)+len(p.Pod.Spec.InitContainers) > 1 {
			podArg += " -c " + e.Container
		}
	case !hasStarted:
		return ""
	}
	return "podd logs " + podArg
}

// problemLines returns a line for each problem for which the function includes returns true.
func (w *explainer) problemLines(includes func(server.ProblemView) bool) string {
	text := ""
	for _, q := range w.view.Problems {
		if includes(q) {
			text += labelledLine("issue", problemText(q, w.workingDir))
		}
	}
	return text
}

// isShownInHeadline reports whether the message of the problem q contains the reason that the
// headline of the pod shows.
func isShownInHeadline(q server.ProblemView, p *server.PodView) bool {
	contains := func(reason string) bool { return reason != "" && strings.Contains(q.Message, reason) }
	return contains(p.Why) || slices.ContainsFunc(p.Decisions, func(s server.DecisionView) bool { return contains(s.Why) })
}

// formatHeadline returns s, escaped and with a newline, as the first line about a subject.
func formatHeadline(s string) string { return printer.Escape(s) + "\n" }

// labelledLine returns a line with a label, or "" if text is empty.
func labelledLine(label, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("  %-5s  %s\n", label, printer.Escape(text))
}

// withReason returns verb, followed by a colon and the reason. If reason is "", it returns only
// verb.
func withReason(verb, reason string) string {
	if reason == "" {
		return verb
	}
	return verb + ": " + reason
}

// quoteOutput returns the beginning of a container's output in quotes.
func quoteOutput(s string) string {
	return `"` + truncate(printer.Escape(s)) + `"`
}
