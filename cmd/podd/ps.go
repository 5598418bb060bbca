package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// PsCmd is podd ps.
type PsCmd struct {
	Client
	Select
	Output string `short:"o" enum:",wide,json,yaml,name" default:"" placeholder:"FORMAT" help:"wide, name, or everything podd shows as json or yaml."`
	Watch  bool   `short:"w" help:"Go on with what changes."`
}

// Run lists the pods on stdout and what is to be mended on stderr.
func (c *PsCmd) Run(ctx context.Context, s Streams) error {
	p, err := c.connect(ctx)
	if err != nil {
		return err
	}
	l := listing{PsCmd: c, dir: workingDir(), now: time.Now}
	if coloured(s.Out) {
		l.table.paint = paintStatus
	}
	if c.Watch {
		foot := progress.New(s.Err)
		defer foot.Close()
		s.Out, s.Err = foot.Writer(s.Out), foot.Writer(s.Err)
		return p.watch(ctx, func(v *server.View) (bool, error) {
			foot.Set(pulling(l.narrowed(v).Pods...))
			return false, l.follow(v, s)
		})
	}
	v, err := p.state(ctx)
	if err != nil {
		return err
	}
	return l.print(v, s)
}

// asData writes v as json or yaml.
func asData(w io.Writer, format string, v any) error {
	if format == "json" {
		return indented(w, v)
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing yaml: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// workingDir is what paths are shown from; "" when it is not known.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// listing prints Views in one format.
type listing struct {
	*PsCmd
	dir   string
	now   func() time.Time
	table table
	// shown is what follow has printed: of each pod, and of the problems.
	shown    map[server.Key]string
	problems []server.ProblemView
	begun    bool
}

// print lists all of v.
func (l *listing) print(v *server.View, s Streams) error {
	v = l.narrowed(v)
	switch l.Output {
	case "json", "yaml":
		return asData(s.Out, l.Output, v)
	}
	if _, err := io.WriteString(s.Out, l.rows(v)); err != nil {
		return err
	}
	_, err := io.WriteString(s.Err, l.talk(v))
	return err
}

// narrowed is v with only the pods of the namespaces asked for, and problems
// that are theirs or nobody's.
func (l *listing) narrowed(v *server.View) *server.View {
	some := *v
	some.Pods = slices.DeleteFunc(append([]*server.PodView{}, v.Pods...), func(p *server.PodView) bool {
		return !l.keeps(p.Pod.Namespace)
	})
	some.Problems = slices.DeleteFunc(append([]server.ProblemView{}, v.Problems...), func(p server.ProblemView) bool {
		return !l.keepsProblem(v, p)
	})
	return &some
}

// keepsProblem: a problem of a file goes with the pods in it, if there are any.
func (l *listing) keepsProblem(v *server.View, q server.ProblemView) bool {
	if q.Pod != (server.Key{}) {
		return l.keeps(q.Pod.Namespace)
	}
	pods := podsOf(v, q.Path)
	return len(pods) == 0 || slices.ContainsFunc(pods, func(p *server.PodView) bool { return l.keeps(p.Pod.Namespace) })
}

// rows is the table, or the names.
func (l *listing) rows(v *server.View) string {
	var b strings.Builder
	if l.Output == "name" {
		for _, p := range v.Pods {
			b.WriteString(title(v, p.Key()) + "\n")
		}
		return b.String()
	}
	lines := [][]string{heads(l.Output == "wide")}
	for _, p := range v.Pods {
		lines = append(lines, l.cells(v, p))
	}
	if len(v.Pods) == 0 {
		return ""
	}
	l.table.fit(lines)
	for _, line := range lines {
		b.WriteString(l.table.line(line))
	}
	return b.String()
}
