package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// retryEvery is how often a podd that is not there yet is looked for.
const retryEvery = 100 * time.Millisecond

// WaitCmd is podd wait.
type WaitCmd struct {
	Client
	Select
	Targets []string      `arg:"" name:"pod|file" help:"Pods, with or without the node's name, or manifests, which stand for all pods in them." complete:"pod,file"`
	For     string        `enum:",ready,applied,condition=Ready,condition=ready" default:"" placeholder:"WHAT" help:"ready, or condition=Ready as kubectl has it: the pod, in whatever version runs; applied: what its file holds now. A file is waited for until applied, a pod until ready, when not told."`
	Timeout time.Duration `default:"30s" placeholder:"DURATION" help:"Give up after this long (30s); 0 waits for ever."`
}

// Run returns once everything waited for is true at one time. A podd that is
// not running yet is waited for as well.
func (c *WaitCmd) Run(ctx context.Context, s Streams) error {
	goals, err := c.goals()
	if err != nil {
		return err
	}
	begin := time.Now()
	limited, cancel := context.WithCancel(ctx)
	if c.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	foot := progress.New(s.Err)
	defer foot.Close()
	s.Err = foot.Writer(s.Err)
	w := waiting{goals: goals, begin: begin, foot: foot}
	err = c.follow(limited, &w, s)
	switch {
	case err == nil:
		_, err = io.WriteString(s.Err, w.success())
		return err
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return w.failure(ctx, s)
}

// follow looks at every View until all goals are met; it outlives podd.
func (c *WaitCmd) follow(ctx context.Context, w *waiting, s Streams) error {
	said := false
	for {
		p, err := c.connect(ctx)
		if err == nil {
			w.peer = p
			err = p.watch(ctx, w.look)
		}
		if absent := (notRunning{}); !errors.Is(err, errPoddEnded) && !errors.As(err, &absent) {
			return err
		}
		w.absent = err
		if !said {
			fmt.Fprintf(s.Err, "podd: %v; waiting for it\n", err)
			said = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// goals are what is to come true. Files are read now: what they hold later is
// not waited for.
func (c *WaitCmd) goals() ([]goal, error) {
	var all []goal
	for _, word := range c.Targets {
		g := goal{Select: c.Select, word: word, applied: c.For == "applied", digests: map[string]string{}}
		if looksLikeFile(word) && !isURL(word) {
			g.file = true
			g.applied = c.For == "" || g.applied
			digest, err := digestOf(word)
			if err != nil {
				return nil, err
			}
			g.digests[word] = digest
		}
		all = append(all, g)
	}
	return all, nil
}

// waiting is how far the goals are.
type waiting struct {
	goals  []goal
	begin  time.Time
	peer   *peer        // nil while none was found
	view   *server.View // the last one seen; nil for none
	absent error        // why podd could not be asked the last time
	foot   *progress.Line
}

// look says whether all goals are met; its error is that one never can be.
func (w *waiting) look(v *server.View) (bool, error) {
	w.view, w.absent = v, nil
	all := true
	var pods []*server.PodView
	for i := range w.goals {
		pods = append(pods, w.goals[i].pods(v)...)
		met, err := w.goals[i].met(v)
		if err != nil {
			return false, err
		}
		all = all && met
	}
	w.foot.Set(pulling(pods...))
	return all, nil
}

func (w *waiting) success() string {
	var b strings.Builder
	for i := range w.goals {
		g := &w.goals[i]
		fmt.Fprintf(&b, "podd: %s %s after %s\n", g.name(w.view), g.wanted(), lasted(time.Since(w.begin)))
	}
	return b.String()
}

// failure explains on stderr what every goal that is not met waits for.
func (w *waiting) failure(ctx context.Context, s Streams) error {
	took := lasted(time.Since(w.begin))
	if w.view == nil && w.absent == nil {
		return fmt.Errorf("waited %s in vain: podd has not answered", took)
	} else if w.view == nil {
		return fmt.Errorf("waited %s in vain: %w", took, w.absent)
	}
	r := newReasons(ctx, w.peer, w.view)
	var unmet []string
	for i := range w.goals {
		g := &w.goals[i]
		if met, _ := g.met(w.view); met {
			continue
		}
		found, err := g.find(w.view)
		if err != nil {
			return fmt.Errorf("waited %s in vain: %w", took, err)
		}
		unmet = append(unmet, g.name(w.view))
		io.WriteString(s.Err, r.text(found))
	}
	return fmt.Errorf("%s not %s after %s", strings.Join(unmet, " and "), w.goals[0].wanted(), took)
}
