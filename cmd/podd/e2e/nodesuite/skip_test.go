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
// line with the regular expression. An entry does not apply in two cases: its reason is that the
// specs require a flag, and flags contains this flag; or its reason is that they require the virtual
// machine, and the suite runs on it (onMachine).
func parseSkips(text string, flags []string, onMachine bool) ([]skip, error) {
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
		case onMachine && strings.HasPrefix(reason, "requires the virtual machine: "):
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

func TestParseSkips_Requirements(t *testing.T) {
	const text = "# requires the flag --a; fails with others\nA\n\n# is slow\nB\n\n# requires the virtual machine: reads memory.min\nC\n"
	for name, test := range map[string]struct {
		flags     string
		onMachine bool
		want      string
	}{
		"no flag":             {want: "(A)|(B)|(C)"},
		"the required flag":   {flags: "--a", want: "(B)|(C)"},
		"another flag":        {flags: "--b", want: "(A)|(B)|(C)"},
		"the virtual machine": {onMachine: true, want: "(A)|(B)"},
	} {
		skips, err := parseSkips(text, strings.Fields(test.flags), test.onMachine)
		if got := expression(skips); err != nil || got != test.want {
			t.Errorf("%s: got %q, error %v; want %q", name, got, err, test.want)
		}
	}
}
