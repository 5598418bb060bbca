package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// WhyCmd is podd why.
type WhyCmd struct {
	Client
	Select
	Targets []string `arg:"" optional:"" name:"pod|file" help:"Pods, with or without the node's name, or manifests; without any, all that have a problem." complete:"pod,file"`
}

// Run tells of each target what it does and why, on stdout.
func (c *WhyCmd) Run(ctx context.Context, s Streams) error {
	p, v, err := c.look(ctx)
	if err != nil {
		return err
	}
	subjects, err := c.subjects(v)
	if err != nil {
		return err
	}
	w := newReasons(ctx, p, v)
	if list, err := p.events(ctx); err == nil { // it only adds to what is known without it
		w.events = list.Items
	}
	var texts []string
	if len(c.Targets) == 0 {
		texts = general(v)
	}
	for _, subject := range subjects {
		texts = append(texts, w.text(subject))
	}
	if len(texts) == 0 {
		fmt.Fprintf(s.Err, "podd: %s, nothing wrong\n", plural(len(v.Pods), "pod"))
		return nil
	}
	_, err = io.WriteString(s.Out, strings.Join(texts, "\n"))
	return err
}

// general are the problems of no pod and no file.
func general(v *server.View) []string {
	var texts []string
	for _, q := range v.Problems {
		if q.Pod == (server.Key{}) && q.Path == "" {
			texts = append(texts, plain(q.String())+"\n")
		}
	}
	return texts
}

// newReasons speaks of v as of now and asks p for what containers said.
func newReasons(ctx context.Context, p *peer, v *server.View) *reasons {
	return &reasons{view: v, dir: workingDir(), now: time.Now(), lastLine: func(k server.Key, container string) string {
		return p.lastLine(ctx, k, container)
	}}
}

// subject is what podd why speaks of: a pod or, with the zero key, a file.
type subject struct {
	key  server.Key
	path string
}

// subjects are those that the targets name.
func (c *WhyCmd) subjects(v *server.View) ([]subject, error) {
	targets := c.Targets
	if len(targets) == 0 {
		narrowed := (&listing{PsCmd: &PsCmd{Select: c.Select}}).narrowed(v)
		targets = troubled(narrowed, "")
	}
	var all []subject
	for _, target := range targets {
		s, err := c.subject(v, target)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// subject is the pod or file that a user means. A pod of exactly that name
// comes before a file.
func (c *WhyCmd) subject(v *server.View, word string) (subject, error) {
	key, err := c.Select.find(v, knownKeys(v), word)
	if err == nil {
		return subject{key: key}, nil
	}
	if path := knownPath(v, word); path != "" {
		return subject{path: path}, nil
	}
	if looksLikeFile(word) {
		return subject{}, unknownFileError(v, word)
	}
	return subject{}, err
}

// lastLine is the last line that the container's newest ended run logged; ""
// when there is none to be had.
func (p *peer) lastLine(ctx context.Context, key server.Key, container string) string {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var b strings.Builder
	err := p.logs(ctx, server.LogRequest{
		Pod: types.NamespacedName(key), Container: container, Previous: true, Tail: 1, Limit: 4 << 10,
	}, &b)
	if err != nil {
		return "" // it only adds to what is known without it
	}
	return strings.TrimSpace(b.String())
}
