package cli

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

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

// outdatedText describes the older version of a file that is in effect, and the reason why the
// current version is not. pods are the pods of the file to which the description applies. outdatedText
// returns "" if the current version is in effect.
func outdatedText(f server.FileView, pods []*server.PodView, now time.Time) string {
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
	return text + "; version of " + printer.FormatTime(f.ContentTime, now) + " " + versionState(pods)
}

// versionState describes the version of a file that is in effect. pods are the pods of this version.
// The result is "runs" or "waits to start" if this applies to all pods, otherwise "stays in effect".
func versionState(pods []*server.PodView) string {
	const inEffect = "stays in effect"
	text := ""
	for _, p := range pods {
		state := inEffect
		switch p.Pod.Status.Phase {
		case v1.PodRunning:
			state = "runs"
		case v1.PodPending, "":
			state = "waits to start"
		}
		if text != "" && text != state {
			return inEffect
		}
		text = state
	}
	return cmp.Or(text, inEffect)
}

// problemText formats a problem on one line. The path of the problem is shown relative to
// dir if it is below dir.
func problemText(p server.ProblemView, dir string) string {
	p.Path = paths.Shorten(p.Path, dir)
	return printer.Escape(p.String())
}
