package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// samples are repeated measurements of one value in seconds, bytes or percent.
type samples []float64

func (s samples) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// unit is the format of a number.
type unit struct {
	scale  float64
	format string
}

var (
	seconds   = unit{1, "%.3f s"}
	megabytes = unit{1e-6, "%.1f MB"}
	percent   = unit{1, "%.2f %%"}
	perMinute = unit{1, "%.1f /min"}
	pieces    = unit{1, "%.0f"}
)

func (u unit) formatValue(v float64) string { return fmt.Sprintf(u.format, v*u.scale) }

// summary returns the median and the range, such as "0.171 s (0.160-0.190)".
func (u unit) summary(s samples) string {
	if len(s) == 0 {
		return "-"
	}
	text := u.formatValue(s.median())
	if len(s) > 1 {
		bare, _, _ := strings.Cut(u.format, " ")
		text += fmt.Sprintf(" ("+bare+"-"+bare+")", slices.Min(s)*u.scale, slices.Max(s)*u.scale)
	}
	return text
}

// goal is the maximum of a value of podd. It may depend on row.bare, the value with which podd's
// value is compared. The zero value means no goal.
type goal struct {
	factor float64 // multiplied by the median of row.bare
	offset float64 // added to the product
}

// limit returns the highest median that podd may have, given the samples of row.bare.
func (g goal) limit(bare samples) float64 { return g.factor*bare.median() + g.offset }

func (g goal) text(u unit) string {
	switch {
	case g == goal{}:
		return ""
	case g.offset == 0:
		return fmt.Sprintf("<= %.2fx", g.factor)
	case g.factor == 0:
		return "<= " + u.formatValue(g.offset)
	}
	return "<= bare + " + u.formatValue(g.offset)
}

// row is one line of the table. The field podd contains the samples of podd, and the field bare
// contains the samples with which podd is compared. These are samples of bare CRI calls unless the
// name of the row states another source, such as a kubelet.
type row struct {
	name       string
	bare, podd samples
	unit       unit
	goal       goal
}

func (r row) String() string {
	ratio, mark := "", ""
	if len(r.podd) > 0 && r.bare.median() > 0 {
		ratio = fmt.Sprintf("%.2f", r.podd.median()/r.bare.median())
	}
	if (r.goal != goal{}) && len(r.podd) > 0 && r.podd.median() > r.goal.limit(r.bare) {
		mark = "missed"
	}
	return strings.Join([]string{r.name, r.unit.summary(r.bare), r.unit.summary(r.podd), ratio, r.goal.text(r.unit), mark}, "\t")
}

type table struct {
	rows  []row
	notes []string
}

func (t *table) add(r row) {
	printProgress("result", strings.ReplaceAll(r.String(), "\t", "  "))
	t.rows = append(t.rows, r)
}

// addCallCounts adds a line with the number of calls per pod. The line is printed below the table.
func (t *table) addCallCounts(what string, calls map[string]float64, pods int) {
	t.notes = append(t.notes, "calls per pod, "+what+": "+formatCounts(calls, float64(pods)))
}

// formatCounts formats the total and each count, with the highest count first. It divides all
// numbers by divisor.
func formatCounts(calls map[string]float64, divisor float64) string {
	total, parts := 0.0, []string(nil)
	for _, name := range slices.SortedFunc(maps.Keys(calls), func(a, b string) int {
		return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a, b))
	}) {
		total += calls[name]
		parts = append(parts, fmt.Sprintf("%s %.2f", name, calls[name]/divisor))
	}
	return fmt.Sprintf("%.2f (%s)", total/divisor, strings.Join(parts, ", "))
}

// print prints the rows and then the notes.
func (t *table) print(w io.Writer) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "median (spread)\tbare\tpodd\tratio\tgoal\t")
	for _, r := range t.rows {
		fmt.Fprintln(tab, r.String())
	}
	tab.Flush()
	for _, n := range t.notes {
		fmt.Fprintln(w, n)
	}
}
