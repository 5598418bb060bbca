package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
)

// ValidateCmd is podd validate.
type ValidateCmd struct {
	Paths            []string `arg:"" name:"path|url" help:"Files, directories, URLs; - is stdin." complete:"file"`
	Output           string   `short:"o" enum:"text,yaml,json,github,sarif" default:"text" placeholder:"FORMAT" help:"text, yaml (the pods with all defaults), json, github or sarif."`
	Strict           bool     `help:"Unknown and repeated fields are errors."`
	HostnameOverride string   `placeholder:"NAME" help:"Name of the node the pods are for."`

	FeatureGates map[string]bool `mapsep:"," placeholder:"NAME=BOOL" help:"Feature gates of the node: ContainerRestartRules."`
}

// checked is the outcome for all texts together.
type checked struct {
	files    int
	set      *manifest.Set
	pods     []*manifest.Pod // of set, in the order of the texts
	problems []manifest.Problem
	order    map[string]int // of the texts, by path
}

// Run checks every text and prints what is wrong; any error makes the code 1.
// Nothing is run and nothing but the named texts is read.
func (c *ValidateCmd) Run(ctx context.Context, s Streams) error {
	node, err := c.node()
	if err != nil {
		return err
	}
	r := check(readTexts(ctx, c.Paths, s.In), manifest.Options{Node: node, RestartRules: config.RestartRules(c.FeatureGates), Strict: c.Strict})
	r.add(config.UnknownGates(c.FeatureGates))
	r.add(manifest.Unsupplied(r.pods, r.set.Objects, manifest.Warning)) // it may come later
	if err := r.print(c.Output, s); err != nil {
		return err
	}
	if errs, _ := r.count(); errs > 0 {
		return exitWith(codeFailed, nil)
	}
	return nil
}

// node is the name pods get as a suffix; it decides whether names are too long.
func (c *ValidateCmd) node() (string, error) {
	host := c.HostnameOverride
	if host == "" {
		h, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("reading the hostname: %w", err)
		}
		host = h
	}
	name, err := config.NodeName(host)
	if err != nil && c.HostnameOverride == "" {
		return "localhost", nil // no reason to refuse a check of files
	}
	return name, err
}

// check takes the texts for one source: what is twice in it, or wants one host
// port twice, is an error too.
func check(texts []textFile, o manifest.Options) *checked {
	r := &checked{}
	var files []*manifest.File
	var unread []manifest.Problem
	order := map[string]int{}
	for i, t := range texts {
		if _, ok := order[t.path]; !ok {
			order[t.path] = i
		}
		if t.err != nil {
			unread = append(unread, manifest.Problem{Severity: manifest.Error, Path: t.path, Message: t.err.Error()})
			continue
		}
		o.Kind, o.Path, o.Now = t.kind, t.path, time.Now()
		files = append(files, source.NotEmpty(manifest.Decode(t.data, o), t.data, t.path))
	}
	r.files = len(files)
	all := manifest.Collect("", manifest.KindFile, files...)
	all.Complete = true
	r.set = manifest.Merge([]manifest.Batch{all})
	for _, f := range files {
		for _, p := range f.Pods {
			if r.set.Pods[p.Key] == p {
				r.pods = append(r.pods, p)
			}
		}
	}
	r.order = order
	r.add(slices.Concat(unread, r.set.Problems, manifest.Conflicts(r.pods)))
	return r
}

// add keeps the problems in the order of texts and places.
func (r *checked) add(problems []manifest.Problem) {
	r.problems = append(r.problems, problems...)
	slices.SortStableFunc(r.problems, func(a, b manifest.Problem) int {
		return cmp.Or(
			cmp.Compare(r.order[a.Path], r.order[b.Path]),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column))
	})
}
