package runonce

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"podd/cmd/podd/internal/printer"
	"podd/manifest/wording"
	"podd/reconcile/plan"
)

// formatDuration formats a duration such as "0.8s", "31.0s" or "6m2s".
func formatDuration(d time.Duration) string {
	d = max(d, 0)
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// formatTimes formats a number of repetitions: "once", or "3 times".
func formatTimes(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// runDuration returns the time between the start and the exit of a container.
func runDuration(e *plan.Exit) time.Duration {
	if e.StartedAt.IsZero() || e.FinishedAt.IsZero() {
		return 0
	}
	return max(e.FinishedAt.Sub(e.StartedAt), 0)
}

// describeExit describes the exit of a container and its cause. The result quote contains the last
// line of the output of the container, as in resultRow.
func describeExit(p *runPod, m *container, last []string) (text, quote string) {
	e := m.exit
	switch {
	// containerd reports StartError if a process could not be started.
	case e.Reason == "StartError" && e.Message != "":
		return "did not start: " + withoutRuntimePrefixes(e.Message), ""
	case e.Reason == "OOMKilled":
		return fmt.Sprintf("OOMKilled (%d) after %s: %s", e.Code, formatDuration(runDuration(e)), describeMemoryLimit(p, m)), ""
	}
	if line := wording.FirstLine(e.TerminationMessage); line != "" {
		last = []string{line}
	}
	return printer.FormatExitCode(e.Code) + " after " + formatDuration(runDuration(e)), quoteLastLine(last)
}

// quoteLastLine returns a colon and, in quotes, the last of the given lines. It returns "" if there
// are no lines.
func quoteLastLine(last []string) string {
	if len(last) == 0 {
		return ""
	}
	return ": " + strconv.Quote(truncate(last[len(last)-1], 200))
}

// runtimePrefixes are the texts that runtimes prepend to an error. They are sorted from the
// innermost prefix, which directly precedes the error, to the outermost.
var runtimePrefixes = []string{
	"error during container init: ", "unable to start container process: ",
	"runc create failed: ", "OCI runtime create failed: ", "failed to create shim task: ",
	"failed to create containerd task: ",
}

// withoutRuntimePrefixes returns the error of a runtime without its runtimePrefixes.
func withoutRuntimePrefixes(message string) string {
	for _, prefix := range runtimePrefixes {
		if _, reason, ok := strings.Cut(message, prefix); ok {
			message = reason
			break
		}
	}
	return strings.TrimSuffix(message, ": unknown")
}

// describeMemoryLimit describes the memory limit of a container and the position of the limit in
// the manifest.
func describeMemoryLimit(p *runPod, m *container) string {
	if l, ok := m.spec.Resources.Limits["memory"]; ok && !l.IsZero() {
		return "limit " + l.String() + ", " + fieldPosition(p.Desired, m.path+".resources.limits.memory")
	}
	if r := p.Desired.Object.Spec.Resources; r != nil {
		if l, ok := r.Limits["memory"]; ok && !l.IsZero() {
			return "limit " + l.String() + " of the pod, " + fieldPosition(p.Desired, "spec.resources.limits.memory")
		}
	}
	return "no memory limit is set; the node was out of memory"
}

// withoutSuffix removes the suffix of the run from pod names, because the names in the
// manifests do not contain it.
func withoutSuffix(text, suffix string) string {
	if suffix == "" {
		return text
	}
	return strings.ReplaceAll(text, suffix, "")
}

// truncate shortens a text to at most n bytes at a rune boundary.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// withoutControlChars replaces control characters in a text, because texts of containers,
// runtimes and registries are untrusted.
func withoutControlChars(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return '?'
	}, s)
}
