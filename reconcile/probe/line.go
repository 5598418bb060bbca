package probe

import (
	"strings"
	"unicode"
)

// lineLimit is the most characters of what a container said that are shown.
const lineLimit = 200

// Line is the first line of a text that says something, cut short, without
// what a terminal or a log would take for more than text.
func Line(text string) string {
	for line := range strings.Lines(text) {
		if line = printable(line); line != "" {
			return line
		}
	}
	return ""
}

func printable(line string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(line) {
		if !unicode.IsPrint(r) {
			continue
		}
		if n++; n > lineLimit {
			return b.String() + "…"
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}
