package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// PsCmd is the podd ps command.
type PsCmd struct {
	client.Flags
	PodSelector
	Output string `short:"o" enum:",wide,json,yaml,name" default:"" placeholder:"FORMAT" help:"Output format. One of: wide, json, yaml, name. json and yaml contain podd's complete state."`
	Watch  bool   `short:"w" help:"After listing the requested objects, watch for changes."`
}

// Run prints the pods to stdout and the problems to stderr.
func (c *PsCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	l := viewPrinter{PsCmd: c, workingDir: paths.WorkingDir(), now: time.Now}
	if printer.SupportsColor(s.Out) {
		l.table.ColorCell = paintStatus
	}
	if c.Watch {
		line := progress.New(s.Err)
		defer line.Close()
		s.Out, s.Err = line.Writer(s.Out), line.Writer(s.Err)
		return p.WatchViews(ctx, func(v *server.View) (bool, error) {
			line.SetText(pullProgress(l.filterView(v).Pods...))
			return false, l.printChanges(v, s)
		})
	}
	v, err := p.FetchView(ctx)
	if err != nil {
		return err
	}
	return l.print(v, s)
}

// A viewPrinter prints Views in one format.
type viewPrinter struct {
	*PsCmd
	workingDir string
	now        func() time.Time
	table      printer.Table
	// printedRows contains, for each pod, the identity of the last row that printChanges printed
	// (see rowWithIdentity). lastProblems contains the problems of the previous View.
	printedRows  map[server.Key]string
	lastProblems []server.ProblemView
	hasPrinted   bool
}

// print prints the pods and problems of v.
func (l *viewPrinter) print(v *server.View, s iostreams.Streams) error {
	v = l.filterView(v)
	switch l.Output {
	case "json", "yaml":
		return printer.WriteData(s.Out, l.Output, v)
	}
	if _, err := io.WriteString(s.Out, l.rows(v)); err != nil {
		return err
	}
	_, err := io.WriteString(s.Err, l.diagnostics(v))
	return err
}

// filterView returns a copy of v with only the pods of the selected namespaces. The copy contains
// only the problems for which includesProblem returns true.
func (l *viewPrinter) filterView(v *server.View) *server.View {
	filtered := *v
	filtered.Pods = slices.DeleteFunc(append([]*server.PodView{}, v.Pods...), func(p *server.PodView) bool {
		return !l.includes(p.Pod.Namespace)
	})
	filtered.Problems = slices.DeleteFunc(append([]server.ProblemView{}, v.Problems...), func(p server.ProblemView) bool {
		return !l.includesProblem(v, p)
	})
	return &filtered
}

// includesProblem reports whether the problem q is selected. The problem of a pod is selected
// together with the pod. The problem of a file with pods is selected if one of these pods is
// selected. All other problems are selected.
func (l *viewPrinter) includesProblem(v *server.View, q server.ProblemView) bool {
	if q.Pod != (server.Key{}) {
		return l.includes(q.Pod.Namespace)
	}
	pods := podsInFile(v, q.Path)
	return len(pods) == 0 || slices.ContainsFunc(pods, func(p *server.PodView) bool { return l.includes(p.Pod.Namespace) })
}

// rows returns the table of pods or, with -o name, their names.
func (l *viewPrinter) rows(v *server.View) string {
	var b strings.Builder
	if l.Output == "name" {
		for _, p := range v.Pods {
			b.WriteString(displayName(v, p.Key()) + "\n")
		}
		return b.String()
	}
	lines := [][]string{psHeader(l.Output == "wide")}
	for _, p := range v.Pods {
		lines = append(lines, l.cells(v, p))
	}
	if len(v.Pods) == 0 {
		return ""
	}
	return l.table.FormatLines(lines)
}
