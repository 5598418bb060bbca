package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/probe"
	"podd/server"
)

// reasons makes the sentences of podd why from a View.
type reasons struct {
	view *server.View
	dir  string // paths are shown from here
	now  time.Time
	// lastLine returns the last line of a container's newest ended run, or "".
	lastLine func(pod server.Key, container string) string
	events   []v1.Event // all that podd keeps, the newest last
}

// text is a headline and a line for everything there is to say.
func (w *reasons) text(s subject) string {
	if s.path != "" {
		return w.file(s.path)
	}
	if p := w.view.Pod(s.key); p != nil {
		return w.pod(p, false)
	}
	return headline(title(w.view, s.key)+" does not run: no version of it was good yet") +
		w.problems(func(q server.ProblemView) bool { return q.Pod == s.key })
}

// file tells of a file, what is wrong with it, and of every pod in it.
func (w *reasons) file(path string) string {
	f, pods := fileOf(w.view, path), podsOf(w.view, path)
	state := "nothing of it runs"
	switch {
	case f.Behind != "":
		state = behindText(f, w.now)
	case f.Digest != "":
		state = "wanted as of " + clock(f.Version, w.now) + ", with " + plural(len(pods), "pod")
	}
	text := headline(shortPath(path, w.dir)+": "+state) +
		w.problems(func(q server.ProblemView) bool { return q.Path == path && w.view.Pod(q.Pod) == nil })
	for _, p := range pods {
		text += "\n" + w.pod(p, true)
	}
	return text
}

// pod tells what a pod does, by which rule, how it ended last, what comes next
// and where there is more. inFile leaves out what was told of its file.
func (w *reasons) pod(p *server.PodView, inFile bool) string {
	step := decisive(p)
	text := headline(title(w.view, p.Key()) + " " + w.state(p, step))
	text += line("rule", w.rule(p, step))
	if behind := behindText(fileOf(w.view, p.Path), w.now); behind != "" && !inFile {
		text += line("file", shortPath(p.Path, w.dir)+": "+behind)
	}
	text += w.problems(func(q server.ProblemView) bool {
		files := !inFile && q.Pod == (server.Key{}) && q.Path != "" && q.Path == p.Path
		return (files || q.Pod == p.Key()) && !repeats(q, p)
	})
	for _, q := range p.Pulls {
		text += line("pull", q.Image+" for container "+q.Container+" since "+clock(q.Since, w.now)+", "+since(q.Since, w.now))
	}
	for _, e := range p.Last {
		text += line("last", w.last(p, e))
	}
	for _, e := range w.lately(p) {
		text += line("event", w.eventText(e))
	}
	return text + line("next", w.next(p, step)) + line("more", w.more(p))
}

func (w *reasons) last(p *server.PodView, e server.ExitView) string {
	text := exitText(e)
	if len(p.Pod.Spec.Containers)+len(p.Pod.Spec.InitContainers) > 1 {
		text = e.Container + ": " + text
	}
	said := probe.Line(e.Message)
	if said == "" {
		said = w.lastLine(p.Key(), e.Container)
	}
	if said != "" {
		text += ": " + quoted(said)
	}
	return text
}

// next is what podd does now and, if that is nothing, when it looks again.
func (w *reasons) next(p *server.PodView, step *server.StepView) string {
	const most = 4
	switch {
	case len(p.Next) > most:
		return strings.Join(p.Next[:most], "; ") + fmt.Sprintf("; %d more", len(p.Next)-most)
	case len(p.Next) > 0:
		return strings.Join(p.Next, "; ")
	case step != nil && step.Until.After(w.now):
		return again(step) + " at " + clock(step.Until, w.now)
	case p.Wake.After(w.now):
		return "look again at " + clock(p.Wake, w.now)
	}
	return ""
}

// again is what is done when a step's wait is over.
func again(step *server.StepView) string {
	switch step.Reason {
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable":
		return "pull the image of " + step.Container
	}
	return "start " + step.Container
}

// more is the command that tells more.
func (w *reasons) more(p *server.PodView) string {
	word := wordFor(w.view, p.Key())
	started := slices.ContainsFunc(p.Pod.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.ContainerID != "" })
	switch {
	case len(p.Last) > 0 && !p.Ready:
		word += " --previous"
		if e := p.Last[0]; len(p.Pod.Spec.Containers)+len(p.Pod.Spec.InitContainers) > 1 {
			word += " -c " + e.Container
		}
	case !started:
		return ""
	}
	return "podd logs " + word
}

// problems are the lines of those that are meant.
func (w *reasons) problems(meant func(server.ProblemView) bool) string {
	text := ""
	for _, q := range w.view.Problems {
		if meant(q) {
			text += line("wrong", problemText(q, w.dir))
		}
	}
	return text
}

// repeats says whether q only says again what the pod's decision says.
func repeats(q server.ProblemView, p *server.PodView) bool {
	says := func(why string) bool { return why != "" && strings.Contains(q.Message, why) }
	return says(p.Why) || slices.ContainsFunc(p.Steps, func(s server.StepView) bool { return says(s.Why) })
}

func headline(s string) string { return plain(s) + "\n" }

// line is a labelled line; none for an empty text.
func line(label, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("  %-5s  %s\n", label, plain(text))
}

func clause(verb, why string) string {
	if why == "" {
		return verb
	}
	return verb + ": " + why
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// quoted is the beginning of what a container said.
func quoted(s string) string {
	const most = 200
	r := []rune(plain(s))
	if len(r) > most {
		r = append(r[:most], '…')
	}
	return `"` + string(r) + `"`
}
