package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// retryInterval is the interval between attempts to connect to podd.
const retryInterval = 100 * time.Millisecond

// WaitCmd is the podd wait command.
type WaitCmd struct {
	client.Flags
	PodSelector
	Targets []string      `arg:"" name:"pod|file" help:"Pods, or manifests, which stand for all pods in them. The node name at the end of a pod name may be omitted." complete:"pod,file"`
	For     string        `enum:",ready,applied,condition=Ready,condition=ready" default:"" placeholder:"CONDITION" help:"The condition to wait on. ready or condition=Ready: the running version of the pod is ready. applied: the pod is ready and runs the current content of its file. Default: ready for a pod, applied for a file."`
	Timeout time.Duration `default:"30s" placeholder:"DURATION" help:"The length of time to wait before giving up (30s). 0 waits without limit."`
}

// Run waits until all goals are met at the same time. If podd is not running, it also waits
// until podd starts.
func (c *WaitCmd) Run(ctx context.Context, s iostreams.Streams) error {
	goals, err := c.goals()
	if err != nil {
		return err
	}
	startTime := time.Now()
	waitCtx, cancel := withTimeout(ctx, c.Timeout)
	defer cancel()
	line := progress.New(s.Err)
	defer line.Close()
	s.Err = line.Writer(s.Err)
	w := waitState{goals: goals, startTime: startTime, line: line}
	err = c.follow(waitCtx, &w, s)
	switch {
	case err == nil:
		_, err = io.WriteString(s.Err, w.successMessage())
		return err
	case isFileError(err):
		return w.explainFiles(ctx, s, err)
	case !isTimeout(ctx, err):
		return err
	}
	return w.explainUnmet(ctx, s)
}

// isFileError reports whether err means that a goal cannot be met because a file has errors.
func isFileError(err error) bool {
	_, refused := errors.AsType[refusedError](err)
	noPods, ok := errors.AsType[noPodsError](err)
	return refused || ok && noPods.hasErrors
}

// follow checks every View until all goals are met. If podd stops, it connects again.
func (c *WaitCmd) follow(ctx context.Context, w *waitState, s iostreams.Streams) error {
	hasWarned := false
	for {
		p, err := c.Connect(ctx)
		if err == nil {
			w.client = p
			err = p.WatchViews(ctx, w.check)
		}
		if notRunningErr := (client.NotRunningError{}); !errors.Is(err, client.ErrStreamEnded) && !errors.As(err, &notRunningErr) {
			return err
		}
		w.lastErr = err
		if !hasWarned {
			fmt.Fprintf(s.Err, "podd: %v; waiting until podd runs\n", err)
			hasWarned = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryInterval):
		}
	}
}

// goals returns one goal for each argument. It stores the digests of files at the start, because
// podd wait ignores later changes of a file. If an argument is a base name and the working directory
// has no such file, the argument refers to a manifest of podd. goals stores no digest for it.
func (c *WaitCmd) goals() ([]goal, error) {
	var list []goal
	for _, arg := range c.Targets {
		g := goal{PodSelector: c.PodSelector, arg: arg, mustBeApplied: c.For == "applied", digests: map[string]string{}}
		if looksLikeFile(arg) && !paths.IsURL(arg) {
			g.isFile = true
			g.mustBeApplied = c.For == "" || g.mustBeApplied
			digest, err := fileDigest(arg)
			switch {
			case err == nil:
				g.digests[arg] = digest
			case filepath.Base(arg) != arg || !errors.Is(err, fs.ErrNotExist):
				return nil, err
			}
		}
		list = append(list, g)
	}
	return list, nil
}

// waitState is the progress of podd wait.
type waitState struct {
	goals     []goal
	startTime time.Time
	client    *client.Client // nil until the first connection
	view      *server.View   // the last View; may be nil
	lastErr   error          // the last connection error; nil while connected
	line      *progress.Line
}

// check reports whether all goals are met. It returns an error if a goal can never be met.
func (w *waitState) check(v *server.View) (met bool, err error) {
	w.view, w.lastErr = v, nil
	allMet := true
	var pods []*server.PodView
	for i := range w.goals {
		pods = append(pods, w.goals[i].pods(v)...)
		met, err := w.goals[i].isMet(v)
		if err != nil {
			return false, err
		}
		allMet = allMet && met
	}
	w.line.SetText(pullProgress(pods...))
	return allMet, nil
}

// successMessage returns a message for each goal. All goals must be met.
func (w *waitState) successMessage() string {
	var b strings.Builder
	for i := range w.goals {
		g := &w.goals[i]
		fmt.Fprintf(&b, "podd: %s %s after %s\n", g.displayName(w.view), g.conditionName(), printer.FormatDuration(time.Since(w.startTime)))
	}
	return b.String()
}

// explainFiles prints the state of each file with errors that prevent a goal, and returns err.
func (w *waitState) explainFiles(ctx context.Context, s iostreams.Streams, err error) error {
	r := newExplainer(ctx, w.client, w.view)
	for i := range w.goals {
		g := &w.goals[i]
		_, err := g.isMet(w.view)
		if !isFileError(err) {
			continue
		}
		if target, err := g.find(w.view); err == nil {
			io.WriteString(s.Err, r.explain(subject{path: target.filePath(w.view)}))
		}
	}
	return err
}

// explainUnmet prints the condition that each unmet goal waits for, and returns an error.
func (w *waitState) explainUnmet(ctx context.Context, s iostreams.Streams) error {
	took := printer.FormatDuration(time.Since(w.startTime))
	if w.view == nil && w.lastErr == nil {
		return fmt.Errorf("no response from podd within %s", took)
	} else if w.view == nil {
		return fmt.Errorf("timed out after %s: %w", took, w.lastErr)
	}
	r := newExplainer(ctx, w.client, w.view)
	var unmet []string
	for i := range w.goals {
		g := &w.goals[i]
		if met, _ := g.isMet(w.view); met {
			continue
		}
		target, err := g.find(w.view)
		if err != nil {
			return fmt.Errorf("timed out after %s: %w", took, err)
		}
		unmet = append(unmet, g.displayName(w.view))
		io.WriteString(s.Err, r.explain(target))
	}
	return fmt.Errorf("%s not %s after %s", strings.Join(unmet, " and "), w.goals[0].conditionName(), took)
}
