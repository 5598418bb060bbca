// Package printer formats tables, texts and data for the output of podd's verbs.
package printer

import (
	"strings"
	"unicode/utf8"
)

// A Table aligns cells in columns. The zero value is an empty table. A column never becomes
// narrower, so that later rows are aligned with earlier rows.
type Table struct {
	widths []int
	// HasKubectlWidths is set if the columns are as wide as those of kubectl.
	HasKubectlWidths bool
	// ColorCell returns a cell with terminal colors; may be nil.
	ColorCell func(column int, cell string) string
}

// width returns the width of a column in characters, including the gap to the next column.
func (t *Table) width(column int) int {
	if t.HasKubectlWidths {
		return max(t.widths[column]+3, 6)
	}
	return t.widths[column] + 2
}

// IsEmpty reports whether WidenColumns has not been called yet.
func (t *Table) IsEmpty() bool { return t.widths == nil }

// WidenColumns widens the columns so that the cells of lines fit into them.
func (t *Table) WidenColumns(lines [][]string) {
	for _, line := range lines {
		for i, cell := range line {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
}

// FormatLine returns one row, which ends with a newline.
func (t *Table) FormatLine(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		text := cell
		if t.ColorCell != nil {
			text = t.ColorCell(i, cell)
		}
		b.WriteString(text)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", t.width(i)-utf8.RuneCountInString(cell)))
		}
	}
	return b.String() + "\n"
}

// FormatLines widens the columns for lines and returns the formatted rows.
func (t *Table) FormatLines(lines [][]string) string {
	t.WidenColumns(lines)
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(t.FormatLine(line))
	}
	return b.String()
}
