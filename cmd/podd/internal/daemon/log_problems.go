package daemon

import (
	"context"
	"log/slog"
	"slices"

	"podd/manifest"
)

// logProblems logs each problem that is in current and not in previous. It also logs each file
// whose errors were all corrected. Such a file has an error in previous and no error in current.
func logProblems(log *slog.Logger, current, previous []manifest.Problem, files []manifest.FileState) {
	for _, f := range files {
		isError := func(p manifest.Problem) bool { return p.Path == f.Path && p.Severity == manifest.Error }
		if slices.ContainsFunc(previous, isError) && !slices.ContainsFunc(current, isError) {
			log.Info("all errors in a manifest were corrected", "file", f.Path)
		}
	}
	for _, p := range current {
		if slices.Contains(previous, p) {
			continue
		}
		level := slog.LevelWarn
		if p.Severity == manifest.Error {
			level = slog.LevelError
		}
		log.Log(context.Background(), level, "manifest problem found", "at", p.Location(), "problem", p.Text())
	}
}
