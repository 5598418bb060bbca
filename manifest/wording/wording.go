// Package wording helps to write error messages for users: it shortens texts that come from
// manifests, and suggests corrections of misspelled words.
package wording

import (
	"strings"
	"unicode"
)

// MakePrintable limits the length of a text from a user or another program. It removes control
// characters, which could break a line or control a terminal.
func MakePrintable(s string, n int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, Clip(s, n))
}

// Clip limits the length of a text in bytes without cutting a rune.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
