//go:build e2e

package nodesuite

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:embed skip.txt
var skipText string

// A skip is an entry of skip.txt: an expression for specs that do not run, and the reason.
type skip struct {
	specs  *regexp.Regexp
	reason string
}

// parseSkips parses skip.txt. Each entry is a line with the reason, which starts with "#", and a
// line with the regular expression. An entry does not apply if its reason is that the specs require a
// flag, and flags contains this flag.
func parseSkips(text string, flags []string) ([]skip, error) {
	var all []skip
	reason := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		comment, isComment := strings.CutPrefix(line, "# ")
		switch {
		case isComment:
			reason = comment
		case line == "":
			reason = ""
		case reason == "":
			return nil, fmt.Errorf("skip.txt: %q has no reason; write one in the line above", line)
		case slices.ContainsFunc(flags, func(flag string) bool { return strings.HasPrefix(reason, "requires the flag "+flag+";") }):
		default:
			specs, err := regexp.Compile(line)
			if err != nil {
				return nil, fmt.Errorf("skip.txt: %w", err)
			}
			all = append(all, skip{specs, reason})
		}
	}
	return all, nil
}

// expression returns one expression for the specs of all entries.
func expression(skips []skip) string {
	var all []string
	for _, s := range skips {
		all = append(all, "("+s.specs.String()+")")
	}
	return strings.Join(all, "|")
}

// reasonFor returns the reason of the first entry that matches a spec.
func reasonFor(name string, skips []skip) string {
	for _, s := range skips {
		if s.specs.MatchString(name) {
			return s.reason
		}
	}
	return "no entry"
}

func TestParseSkips_Flag(t *testing.T) {
	const text = "# requires the flag --a; fails with others\nA\n\n# is slow\nB\n"
	for flags, want := range map[string]string{"": "(A)|(B)", "--a": "(B)", "--b": "(A)|(B)"} {
		skips, err := parseSkips(text, strings.Fields(flags))
		if got := expression(skips); err != nil || got != want {
			t.Errorf("with the flags %q: got %q, error %v; want %q", flags, got, err, want)
		}
	}
}
