package main

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/progress"
	"podd/server"
	kubetable "podd/server/kube/table"
)

// heads are the column heads.
func heads(wide bool) []string {
	h := []string{"NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"}
	if wide {
		h = append(h, "IP", "RULE")
	}
	return append(h, "FROM")
}

// paintStatus colours the column STATUS of heads.
func paintStatus(column int, cell string) string {
	if column != 3 || cell == "STATUS" || cell == "-" {
		return cell
	}
	return tinted(cell)
}

// cells are a pod's row.
func (l *listing) cells(v *server.View, p *server.PodView) []string {
	now := l.now()
	c := columns(p, now)
	row := []string{p.Pod.Namespace, shortName(v, p.Pod.Name), c.Ready, c.Status, c.Restarts, c.Age}
	if l.Output == "wide" {
		row = append(row, orNone(p.Pod.Status.PodIP), orNone(p.Rule))
	}
	row = append(row, l.from(v, p, now))
	for i := range row {
		row[i] = plain(row[i])
	}
	return row
}

// columns are those of the version that runs, where it is not the one wanted.
func columns(p *server.PodView, now time.Time) kubetable.PodWords {
	c := kubetable.WordsOf(p.Pod, now)
	n := p.Earlier + p.Ending
	if n > 0 {
		c.Ready, c.Status = fmt.Sprintf("%d/%d", n, max(n, len(p.Pod.Spec.Containers))), string(v1.PodRunning)
	}
	if p.Ending > 0 {
		c.Status = "Terminating"
	}
	return c
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// from is where a pod was written, and which version of that runs when it is
// not the present one. Wide gives the whole place.
func (l *listing) from(v *server.View, p *server.PodView, now time.Time) string {
	place := orNone(p.Path)
	switch {
	case isURL(p.Path):
	case l.Output == "wide":
		place = shortPath(place, l.dir)
	default:
		place = path.Base(place)
	}
	if l.Output == "wide" && p.Line > 0 {
		place += ":" + strconv.Itoa(p.Line)
	}
	notes := []string{behindText(fileOf(v, p.Path), now), "", progress.Text(pullsOf(p), now)}
	if notes[0] == "" && p.EditWaits() {
		notes[1] = "edit waits"
	}
	notes = filter(notes, func(s string) bool { return s != "" })
	if len(notes) == 0 {
		return place
	}
	return place + " (" + strings.Join(notes, "; ") + ")"
}

// fileOf is the file of a path; the zero FileView when it is not known.
func fileOf(v *server.View, path string) server.FileView {
	for _, f := range v.Files {
		if f.Path == path {
			return f
		}
	}
	return server.FileView{}
}

// table pads cells to columns. Its zero value is empty; columns only grow, so
// that rows that follow later still stand below the first.
type table struct {
	widths []int
	// kubectl has the columns as wide as kubectl's.
	kubectl bool
	// paint makes a cell of a column what a terminal shows in a colour; nil: none.
	paint func(column int, cell string) string
}

// width is that of a column and of what stands before the next.
func (t *table) width(i int) int {
	if t.kubectl {
		return max(t.widths[i]+3, 6)
	}
	return t.widths[i] + 2
}

func (t *table) fit(lines [][]string) {
	for _, line := range lines {
		for i, cell := range line {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
}

// line is one row with its end.
func (t *table) line(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		shown := cell
		if t.paint != nil {
			shown = t.paint(i, cell)
		}
		b.WriteString(shown)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", t.width(i)-utf8.RuneCountInString(cell)))
		}
	}
	return b.String() + "\n"
}
