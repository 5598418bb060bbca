package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/manifest/order"
	"podd/server"
)

// diagnostics returns the problems and the commands that explain them.
func (l *viewPrinter) diagnostics(v *server.View) string {
	var b strings.Builder
	if v.ShuttingDown {
		b.WriteString("podd: the node is shutting down" + shutdownNotice + "\n")
	}
	if len(v.Pods) == 0 {
		b.WriteString(noPodsMessage(v, l.Namespace))
	}
	for _, p := range v.Problems {
		if !isShownInStatus(v, p) {
			b.WriteString(problemText(p, l.workingDir) + "\n")
		}
	}
	if l.Output != "name" {
		b.WriteString(whyHints(v, l.workingDir))
	}
	return b.String()
}

// isShownInStatus reports whether q is a crash that the STATUS of the pod already shows.
func isShownInStatus(v *server.View, q server.ProblemView) bool {
	p := v.Pod(q.Pod)
	return p != nil && slices.ContainsFunc(p.Decisions, func(s server.DecisionView) bool {
		return s.Reason == "CrashLoopBackOff" && strings.Contains(q.Message, s.Why)
	})
}

// noPodsMessage explains why there are no pods.
func noPodsMessage(v *server.View, namespace string) string {
	switch {
	case v.Starting:
		return "podd: no pods yet; podd is starting and has not listed the pods of the runtime\n"
	case v.IsDown:
		return "podd: no pods, because \"podd down\" stopped them; restart podd to run them again\n"
	case namespace != "":
		return fmt.Sprintf("podd: no pods in namespace %s\n", namespace)
	case len(v.Sources) == 0:
		return "podd: no pods, because podd has no source of pods; set one, for example with --pod-manifest-path\n"
	}
	return printer.Escape("podd: no pods in "+strings.Join(v.Sources, " and ")) + "\n"
}

// maxHints limits the commands that whyHints returns. If there are more problems, whyHints
// returns only "podd why".
const maxHints = 4

// whyHints returns the number of pods and files with problems, and the commands that
// explain them. It returns "" if there are no problems.
func whyHints(v *server.View, dir string) string {
	hints := whyArguments(v, dir)
	switch n := len(hints); {
	case n == 0:
		return ""
	case n > maxHints:
		return fmt.Sprintf("%d problems: podd why\n", n)
	default:
		for i := range hints {
			hints[i] = "podd why " + hints[i]
		}
		return printer.FormatCount(n, "problem") + ": " + strings.Join(hints, ", ") + "\n"
	}
}

// whyArguments returns the arguments of podd why for all problems: the pods with a
// problem, and then the files with a problem that is not about a single pod.
func whyArguments(v *server.View, dir string) []string {
	var podArgs, files []string
	remaining := map[server.Key]bool{} // the pods with a problem that podArgs does not contain yet
	for _, q := range v.Problems {
		key, ok := problemPod(v, q)
		switch file := printer.Escape(paths.Shorten(q.Path, dir)); {
		case ok:
			remaining[key] = true
		case file != "" && !slices.Contains(files, file):
			files = append(files, file)
		}
	}
	for _, p := range v.Pods {
		key := p.Key()
		if remaining[key] || p.NeedsUser || slices.ContainsFunc(p.Decisions, func(s server.DecisionView) bool { return s.NeedsUser }) {
			podArgs = append(podArgs, podArgument(v, key))
		}
		delete(remaining, key)
	}
	for _, key := range order.Collect(maps.Keys(remaining), func(a, b server.Key) int { return strings.Compare(a.String(), b.String()) }) {
		podArgs = append(podArgs, podArgument(v, key)) // the manifest was rejected, so there is no pod
	}
	return append(podArgs, files...)
}

// problemPod returns the pod that the problem q is about: the pod that q names, or the only
// pod in its file. ok is false if there is no such pod.
func problemPod(v *server.View, q server.ProblemView) (pod server.Key, ok bool) {
	if q.Pod != (server.Key{}) {
		return q.Pod, true
	}
	if pods := podsInFile(v, q.Path); len(pods) == 1 {
		return pods[0].Key(), true
	}
	return server.Key{}, false
}

// podsInFile returns the pods that are defined in the file path. It returns none if path is
// "".
func podsInFile(v *server.View, path string) []*server.PodView {
	return filter(v.Pods, func(p *server.PodView) bool { return path != "" && p.Path == path })
}

// podArgument returns the shortest argument that selects the pod.
func podArgument(v *server.View, key server.Key) string {
	keys := podAndProblemKeys(v)
	for _, arg := range []string{shortName(v, key.Name), displayName(v, key)} {
		if found, err := (PodSelector{}).findKey(v, keys, arg); err == nil && found == key {
			return arg
		}
	}
	return key.String()
}
