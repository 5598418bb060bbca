package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// WhyCmd is the podd why command.
type WhyCmd struct {
	client.Flags
	PodSelector
	Targets []string `arg:"" optional:"" name:"pod|file" help:"Pods or manifests. The node name at the end of a pod name may be omitted. Default: all that have a problem." complete:"pod,file"`
}

// Run prints the state of each target and the reason for it.
func (c *WhyCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, v, err := connectAndFetchState(ctx, c.Flags)
	if err != nil {
		return err
	}
	subjects, err := c.findSubjects(v)
	if err != nil {
		return err
	}
	w := newExplainer(ctx, p, v)
	if list, err := p.ListEvents(ctx); err == nil { // the error is ignored, because podd why also works without events
		w.events = list.Items
	}
	var texts []string
	if len(c.Targets) == 0 {
		texts = generalProblems(v)
	}
	for _, subject := range subjects {
		texts = append(texts, w.explain(subject))
	}
	if len(texts) == 0 {
		fmt.Fprintf(s.Err, "podd: %s, no problems\n", printer.FormatCount(len(v.Pods), "pod"))
		return nil
	}
	_, err = io.WriteString(s.Out, strings.Join(texts, "\n"))
	return err
}

// generalProblems returns a line for each problem that concerns neither a pod nor a file.
func generalProblems(v *server.View) []string {
	var texts []string
	for _, q := range v.Problems {
		if q.Pod == (server.Key{}) && q.Path == "" {
			texts = append(texts, printer.Escape(q.String())+"\n")
		}
	}
	return texts
}

// newExplainer returns an explainer of v. The explainer reads logs with p.
func newExplainer(ctx context.Context, p *client.Client, v *server.View) *explainer {
	return &explainer{view: v, workingDir: paths.WorkingDir(), now: time.Now(), lastLogLine: func(k server.Key, container string) string {
		return fetchLastLogLine(ctx, p, k, container)
	}}
}

// A subject is the pod or file that podd why explains: the pod with key or, if key is zero, the
// file at path.
type subject struct {
	key  server.Key
	path string
}

// findSubjects returns the subjects of the targets. Without targets, it returns all pods and
// files with a problem.
func (c *WhyCmd) findSubjects(v *server.View) ([]subject, error) {
	targets := c.Targets
	if len(targets) == 0 {
		view := (&viewPrinter{PsCmd: &PsCmd{PodSelector: c.PodSelector}}).filterView(v)
		targets = whyArguments(view, "")
	}
	var subjects []subject
	for _, target := range targets {
		s, err := c.findSubject(v, target)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return subjects, nil
}

// findSubject returns the pod or file that arg selects. If arg selects both a pod and a file,
// findSubject returns the pod.
func (s PodSelector) findSubject(v *server.View, arg string) (subject, error) {
	key, err := s.findKey(v, podAndProblemKeys(v), arg)
	if err == nil {
		return subject{key: key}, nil
	}
	if path := findPath(v, arg); path != "" {
		return subject{path: path}, nil
	}
	if looksLikeFile(arg) {
		return subject{}, unknownFileError(v, arg)
	}
	return subject{}, err
}

// fetchLastLogLine returns the last line of the log of a container's newest run that has exited, or
// "" if the log cannot be read.
func fetchLastLogLine(ctx context.Context, p *client.Client, key server.Key, container string) string {
	ctx, cancel := context.WithTimeout(ctx, client.ResponseTimeout)
	defer cancel()
	var b strings.Builder
	err := p.CopyLog(ctx, server.LogRequest{
		Pod: types.NamespacedName(key), Container: container, Previous: true, Tail: 1, Limit: 4 << 10,
	}, &b)
	if err != nil {
		return "" // the error is ignored, because podd why also works without this line
	}
	return strings.TrimSpace(b.String())
}
