//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// amounts are what differs from one look to the next.
var amounts = regexp.MustCompile(` +\d+(m|Mi|%)`)

// TestTop: what is used as soon as a pod is there, in the words of kubectl top.
func TestTop(t *testing.T) {
	t.Parallel()
	d, k := listening(t)
	for _, words := range [][]string{
		{"top", "pod"}, {"top", "pods", "-A", "--sum"}, {"top", "pod", "--containers"}, {"top", "pods", "-l", "app=web", "--no-headers"}, {"top", "node"},
	} {
		out, _ := d.verb(words...)
		theirs := strings.Split(k.run(words...), "\n")
		for i := range theirs {
			theirs[i] = strings.TrimRight(theirs[i], " ")
		}
		if got, want := amounts.ReplaceAllString(out, " $1"), amounts.ReplaceAllString(strings.Join(theirs, "\n"), " $1"); got != want || !amounts.MatchString(out) {
			t.Errorf("%v says\n%s, kubectl\n%s", words, got, want)
		}
	}
	if out, _ := d.verb("top", "pod", "web", "-o", "json"); !strings.Contains(out, `"kind": "PodMetrics"`) || !strings.Contains(out, d.full("web")) {
		t.Errorf("as json:\n%s", out)
	}
	d.apply(d.pod("late", shell("main", serve("main"))))
	d.untilApplied("late")
	if out, _ := d.verb("top", "pod", "late", "--no-headers"); !strings.HasPrefix(out, d.full("late")+" ") || !amounts.MatchString(out) {
		t.Errorf("of a pod that has just started: %q", out)
	}
}
