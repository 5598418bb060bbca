package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/duration"

	"podd/server"
)

// lasted is a duration as people say it: "30ms", "0.8s", "31s", "6m".
func lasted(d time.Duration) string {
	switch d = max(d, 0).Round(time.Millisecond); {
	case d < 100*time.Millisecond:
		return d.String()
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return duration.HumanDuration(d.Round(time.Second))
}

// since is how long ago t was, in whole seconds.
func since(t, now time.Time) string { return duration.HumanDuration(max(now.Sub(t), 0)) }

// clock is a time of day, with the day where that is not today's.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// exitText says how a container ended: "exit 1 after 0.8s".
func exitText(e server.ExitView) string {
	what := fmt.Sprintf("exit %d", e.ExitCode)
	if e.Reason == "OOMKilled" {
		what = fmt.Sprintf("OOMKilled (%d)", e.ExitCode)
	} else if name := unix.SignalName(unix.Signal(e.ExitCode - 128)); e.ExitCode > 128 && name != "" {
		what = fmt.Sprintf("%s (%d)", name, e.ExitCode)
	}
	if !e.Started.IsZero() && !e.Finished.IsZero() {
		what += " after " + lasted(e.Finished.Sub(e.Started))
	}
	if e.Why != "" {
		what += ", stopped: " + e.Why
	}
	return what
}

// behindText says which content of a file runs when it is not the present one;
// "" when it is.
func behindText(f server.FileView, now time.Time) string {
	if f.Behind == "" {
		return ""
	}
	text := f.Behind
	if !f.Since.IsZero() {
		text += " " + since(f.Since, now) + " ago"
	}
	if f.Version.IsZero() {
		return text
	}
	return text + "; version of " + clock(f.Version, now) + " runs"
}

// problemText is a problem on one line, its path as short as can be from dir.
func problemText(p server.ProblemView, dir string) string {
	p.Path = shortPath(p.Path, dir)
	return plain(p.String())
}

// shortPath is path seen from dir, where it is below that; URLs stay.
func shortPath(path, dir string) string {
	if below, err := filepath.Rel(dir, path); err == nil && dir != "" && filepath.IsLocal(below) && filepath.IsAbs(path) {
		return below
	}
	return path
}

// isURL tells URLs from files among the paths of a View.
func isURL(path string) bool { return strings.Contains(path, "://") }

// plain escapes what would start another line or steer a terminal: names and
// messages come from manifests, registries and containers.
func plain(s string) string {
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
