package wording

import (
	"strings"
	"unicode"
)

// maxLine is the maximum length in characters of a line from a container.
const maxLine = 200

// FirstLine returns the first non-empty line of text. It removes unprintable characters, such as
// terminal escapes, and truncates the line to 200 characters.
func FirstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = removeUnprintable(line); line != "" {
			return line
		}
	}
	return ""
}

func removeUnprintable(line string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(line) {
		if !unicode.IsPrint(r) {
			continue
		}
		if n++; n > maxLine {
			return b.String() + "…"
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}
