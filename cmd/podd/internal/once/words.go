package once

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"podd/reconcile/plan"
	"podd/reconcile/probe"
)

// words is a duration as people say it: "0.8s", "31.0s", "6m2s".
func words(d time.Duration) string {
	d = max(d, 0)
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// ran is how long the container did.
func ran(e *plan.Exit) time.Duration {
	if e.StartedAt.IsZero() || e.FinishedAt.IsZero() {
		return 0
	}
	return max(e.FinishedAt.Sub(e.StartedAt), 0)
}

// explain says how a container ended, and what there is to say why.
func explain(p *Pod, m *member, last []string) string {
	e := m.exit
	switch {
	// The runtime's word for a process that could not be begun.
	case e.Reason == "StartError" && e.Message != "":
		return "did not start: " + startError(e.Message)
	case e.Reason == "OOMKilled":
		return fmt.Sprintf("OOMKilled (%d) after %s: %s", e.Code, words(ran(e)), limit(p, m))
	}
	if line := probe.Line(e.Said); line != "" {
		last = []string{line}
	}
	return exitWords(e.Code) + " after " + words(ran(e)) + quoteLast(last)
}

// quoteLast is the last line of output, after a colon; "" for none.
func quoteLast(last []string) string {
	if len(last) == 0 {
		return ""
	}
	return ": " + strconv.Quote(cut(last[len(last)-1], 200))
}

// startLayers are what runtimes put before the reason, the innermost first.
var startLayers = []string{
	"error during container init: ", "unable to start container process: ",
	"runc create failed: ", "OCI runtime create failed: ", "failed to create shim task: ",
	"failed to create containerd task: ",
}

// startError is the runtime's word without its layers.
func startError(message string) string {
	for _, layer := range startLayers {
		if _, inner, ok := strings.Cut(message, layer); ok {
			message = inner
			break
		}
	}
	return strings.TrimSuffix(message, ": unknown")
}

// exitWords is an exit code, by the signal's name where it stands for one.
func exitWords(code int32) string {
	if code > 128 {
		if name := unix.SignalName(unix.Signal(code - 128)); name != "" {
			return fmt.Sprintf("%s (%d)", name, code)
		}
	}
	return fmt.Sprintf("exit %d", code)
}

// limit is the memory limit that a container ran into, and where it is written.
func limit(p *Pod, m *member) string {
	if l, ok := m.spec.Resources.Limits["memory"]; ok && !l.IsZero() {
		return "limit " + l.String() + ", " + position(p.Wanted, m.path+".resources.limits.memory")
	}
	if r := p.Wanted.Spec.Spec.Resources; r != nil {
		if l, ok := r.Limits["memory"]; ok && !l.IsZero() {
			return "limit " + l.String() + " of the pod, " + position(p.Wanted, "spec.resources.limits.memory")
		}
	}
	return "it has no limit, so the machine ran out of memory"
}

// shown is a text without the suffix that the run's pods have behind their
// names, which users did not write.
func shown(text, suffix string) string {
	if suffix == "" {
		return text
	}
	return strings.ReplaceAll(text, suffix, "")
}

// cut shortens a text to at most n bytes, whole runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// plain replaces what a terminal would act upon: what containers, runtimes and
// registries say is anyone's.
func plain(s string) string {
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
