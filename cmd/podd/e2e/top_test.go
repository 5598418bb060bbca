//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// amounts matches CPU and memory values, which differ between two calls.
var amounts = regexp.MustCompile(` +\d+(m|Mi|%)`)

// TestTop checks that "podd top" prints the same as "kubectl top", and that it prints the usage of a
// pod as soon as the pod runs.
func TestTop(t *testing.T) {
	t.Parallel()
	d, k := startListening(t)
	for _, words := range [][]string{
		{"top", "pod"}, {"top", "pods", "-A", "--sum"}, {"top", "pod", "--containers"}, {"top", "pods", "-l", "app=web", "--no-headers"}, {"top", "node"},
	} {
		out, _ := d.verb(words...)
		theirs := strings.Split(k.run(words...), "\n")
		for i := range theirs {
			theirs[i] = strings.TrimRight(theirs[i], " ")
		}
		if got, want := amounts.ReplaceAllString(out, " $1"), amounts.ReplaceAllString(strings.Join(theirs, "\n"), " $1"); got != want || !amounts.MatchString(out) {
			t.Errorf("podd %v: got\n%s\nwant the output of kubectl:\n%s", words, got, want)
		}
	}
	if out, _ := d.verb("top", "pod", "web", "-o", "json"); !strings.Contains(out, `"kind": "PodMetrics"`) || !strings.Contains(out, d.podName("web")) {
		t.Errorf("podd top -o json: got\n%s, want %q and the name of pod web in it", out, `"kind": "PodMetrics"`)
	}
	d.apply(d.pod("late", shell("main", serve("main"))))
	d.untilApplied("late")
	if out, _ := d.verb("top", "pod", "late", "--no-headers"); !strings.HasPrefix(out, d.podName("late")+" ") || !amounts.MatchString(out) {
		t.Errorf("podd top of a pod that has just started: got %q, want a line with the name of pod late and its usage", out)
	}
}
