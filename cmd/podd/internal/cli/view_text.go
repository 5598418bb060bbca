package cli

import (
	"fmt"
	"time"

	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// exitText describes the exit of a container, such as "exit 1 after 0.8s".
func exitText(e server.ExitView) string {
	text := printer.FormatExitCode(e.ExitCode)
	if e.Reason == "OOMKilled" {
		text = fmt.Sprintf("OOMKilled (%d)", e.ExitCode)
	}
	if !e.Started.IsZero() && !e.Finished.IsZero() {
		text += " after " + printer.FormatDuration(e.Finished.Sub(e.Started))
	}
	if e.Why != "" {
		text += ", stopped: " + e.Why
	}
	return text
}

// truncate shortens a text to 200 characters.
func truncate(s string) string {
	const limit = 200
	r := []rune(s)
	if len(r) > limit {
		r = append(r[:limit], '…')
	}
	return string(r)
}

// behindText describes the older version of a file that podd uses, and the reason why podd does not
// use the current version. It returns "" if podd uses the current version.
func behindText(f server.FileView, now time.Time) string {
	if f.OutdatedReason == "" {
		return ""
	}
	text := f.OutdatedReason
	if !f.OutdatedSince.IsZero() {
		text += " " + printer.FormatAge(f.OutdatedSince, now) + " ago"
	}
	if f.ContentTime.IsZero() {
		return text
	}
	return text + "; version of " + printer.FormatTime(f.ContentTime, now) + " runs"
}

// problemText formats a problem on one line. The path of the problem is shown relative to
// dir if it is below dir.
func problemText(p server.ProblemView, dir string) string {
	p.Path = paths.Shorten(p.Path, dir)
	return printer.Escape(p.String())
}
