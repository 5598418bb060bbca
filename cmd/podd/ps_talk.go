package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"podd/server"
)

// talk are the problems, and where to read on.
func (l *listing) talk(v *server.View) string {
	var b strings.Builder
	if v.ShuttingDown {
		b.WriteString("podd: the machine is shutting down; nothing is started until it has booted, or podd shutdown --cancel\n")
	}
	if len(v.Pods) == 0 {
		b.WriteString(nothingRuns(v, l.Namespace))
	}
	for _, p := range v.Problems {
		if !inStatus(v, p) {
			b.WriteString(problemText(p, l.dir) + "\n")
		}
	}
	if l.Output != "name" {
		b.WriteString(readOn(v, l.dir))
	}
	return b.String()
}

// inStatus says whether the pod's STATUS tells q well enough: a crash.
func inStatus(v *server.View, q server.ProblemView) bool {
	p := v.Pod(q.Pod)
	return p != nil && slices.ContainsFunc(p.Steps, func(s server.StepView) bool {
		return s.Reason == "CrashLoopBackOff" && strings.Contains(q.Message, s.Why)
	})
}

// nothingRuns tells how to begin.
func nothingRuns(v *server.View, namespace string) string {
	switch {
	case v.Starting:
		return "podd: no pods seen yet; it has just started and has not looked at the runtime\n"
	case v.Down:
		return "podd: no pods; podd was told to keep all pods down; start it again to run them\n"
	case namespace != "":
		return fmt.Sprintf("podd: no pods in namespace %s\n", namespace)
	case len(v.Sources) == 0:
		return "podd: no pods, and no source of any; see podd run --help for --pod-manifest-path\n"
	}
	return plain("podd: no pods; those in "+strings.Join(v.Sources, " and ")+" would run") + "\n"
}

// maxHints is how many commands readOn names; beyond, one names all.
const maxHints = 4

// readOn counts what is wrong, a pod or a file once, and names the commands
// that tell more; "" when nothing is.
func readOn(v *server.View, dir string) string {
	hints := troubled(v, dir)
	switch n := len(hints); {
	case n == 0:
		return ""
	case n > maxHints:
		return fmt.Sprintf("%d problems: podd why\n", n)
	default:
		for i := range hints {
			hints[i] = "podd why " + hints[i]
		}
		return plural(n, "problem") + ": " + strings.Join(hints, ", ") + "\n"
	}
}

// troubled names the pods that have a problem, then the files that have one of
// no single pod, by the words that podd why takes.
func troubled(v *server.View, dir string) []string {
	var words, files []string
	bad := map[server.Key]bool{}
	for _, q := range v.Problems {
		key, ok := blames(v, q)
		switch word := plain(shortPath(q.Path, dir)); {
		case ok:
			bad[key] = true
		case word != "" && !slices.Contains(files, word):
			files = append(files, word)
		}
	}
	for _, p := range v.Pods {
		key := p.Key()
		if bad[key] || p.Problem || slices.ContainsFunc(p.Steps, func(s server.StepView) bool { return s.Problem }) {
			words = append(words, wordFor(v, key))
		}
		delete(bad, key)
	}
	for _, key := range slices.SortedFunc(maps.Keys(bad), func(a, b server.Key) int { return strings.Compare(a.String(), b.String()) }) {
		words = append(words, wordFor(v, key)) // refused, so there is no pod
	}
	return append(words, files...)
}

// blames is the one pod that q is a problem of: the one it names or the only
// one of its file.
func blames(v *server.View, q server.ProblemView) (server.Key, bool) {
	if q.Pod != (server.Key{}) {
		return q.Pod, true
	}
	if pods := podsOf(v, q.Path); len(pods) == 1 {
		return pods[0].Key(), true
	}
	return server.Key{}, false
}

// podsOf are the pods written in a file; none for "".
func podsOf(v *server.View, path string) []*server.PodView {
	return filter(v.Pods, func(p *server.PodView) bool { return path != "" && p.Path == path })
}

// wordFor is the shortest word by which a user can name the pod.
func wordFor(v *server.View, key server.Key) string {
	keys := knownKeys(v)
	for _, word := range []string{shortName(v, key.Name), title(v, key)} {
		if found, err := (Select{}).find(v, keys, word); err == nil && found == key {
			return word
		}
	}
	return key.String()
}
