package printer

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/duration"
)

// FormatDuration formats a duration with at most two digits, such as "30ms", "0.8s", "31s" or "6m".
func FormatDuration(d time.Duration) string {
	switch d = max(d, 0).Round(time.Millisecond); {
	case d < 100*time.Millisecond:
		return d.String()
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return duration.HumanDuration(d.Round(time.Second))
}

// FormatAge formats the difference between t and now in whole seconds.
func FormatAge(t, now time.Time) string { return duration.HumanDuration(max(now.Sub(t), 0)) }

// FormatTime formats t as a time of day. If t is not on the same day as now, the result also
// contains the date.
func FormatTime(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// Escape escapes the characters of s that would start a new line or control the terminal. Names
// and messages must be escaped, because they come from manifests, registries and containers.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// OrNone returns s, or "<none>" if s is empty.
func OrNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// FormatCount formats a number and a noun in singular or plural, such as "1 pod" or "2 pods".
func FormatCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FormatExitCode formats the exit code of a container, such as "exit 1". If a signal terminated the
// process, the result names the signal, such as "SIGKILL (137)".
func FormatExitCode(code int32) string {
	if name := unix.SignalName(unix.Signal(code - 128)); code > 128 && name != "" {
		return fmt.Sprintf("%s (%d)", name, code)
	}
	return fmt.Sprintf("exit %d", code)
}
