package cli

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/progress"
	"podd/server"
	kubetable "podd/server/kube/table"
)

// psHeader returns the titles of the columns.
func psHeader(wide bool) []string {
	h := []string{"NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"}
	if wide {
		h = append(h, "IP", "RULE")
	}
	return append(h, "FROM")
}

// paintStatus colors the column STATUS.
func paintStatus(column int, cell string) string {
	if column != 3 || cell == "STATUS" || cell == "-" {
		return cell
	}
	return printer.ColorStatus(cell)
}

// cells returns the row of a pod.
func (l *viewPrinter) cells(v *server.View, p *server.PodView) []string {
	now := l.now()
	c := podCells(p, now)
	row := []string{p.Pod.Namespace, shortName(v, p.Pod.Name), c.Ready, c.Status, c.Restarts, c.Age}
	if l.Output == "wide" {
		row = append(row, printer.OrNone(p.Pod.Status.PodIP), printer.OrNone(p.Rule))
	}
	row = append(row, l.fromCell(v, p, now))
	for i := range row {
		row[i] = printer.Escape(row[i])
	}
	return row
}

// podCells returns the cells of the running version of a pod. The running version may differ from
// the desired version.
func podCells(p *server.PodView, now time.Time) kubetable.PodCells {
	c := kubetable.NewPodCells(p.Pod, now)
	n := p.OutdatedRunningContainers + p.OutdatedStoppingContainers
	if n > 0 {
		c.Ready, c.Status = fmt.Sprintf("%d/%d", n, max(n, len(p.Pod.Spec.Containers))), string(v1.PodRunning)
	}
	if p.OutdatedStoppingContainers > 0 {
		c.Status = "Terminating"
	}
	return c
}

// fromCell returns the cell of the column FROM: the path of the pod's manifest, followed by notes
// in parentheses. A note is added if podd uses an older version of the file, if an edit of the pod
// waits until podd can apply it, or if images are being pulled. In the wide format, the path
// contains the directory and the line.
func (l *viewPrinter) fromCell(v *server.View, p *server.PodView, now time.Time) string {
	place := printer.OrNone(p.Path)
	switch {
	case paths.IsURL(p.Path):
	case l.Output == "wide":
		place = paths.Shorten(place, l.workingDir)
	default:
		place = path.Base(place)
	}
	if l.Output == "wide" && p.Line > 0 {
		place += ":" + strconv.Itoa(p.Line)
	}
	notes := []string{outdatedText(findFile(v, p.Path), []*server.PodView{p}, now), "", progress.FormatPulls(podPulls(p), now)}
	if notes[0] == "" && p.HasPendingEdit() {
		notes[1] = "edit waits"
	}
	notes = filter(notes, func(s string) bool { return s != "" })
	if len(notes) == 0 {
		return place
	}
	return place + " (" + strings.Join(notes, "; ") + ")"
}

// findFile returns the file with a path, or the zero FileView.
func findFile(v *server.View, path string) server.FileView {
	for _, f := range v.Files {
		if f.Path == path {
			return f
		}
	}
	return server.FileView{}
}
