package daemon

import (
	"context"
	"log/slog"
	"slices"

	"podd/manifest"
)

// logProblems logs each problem in now that is not in before. It also logs each file with errors in
// before and without errors in now.
func logProblems(log *slog.Logger, now, before []manifest.Problem, files []manifest.FileState) {
	for _, f := range files {
		isError := func(p manifest.Problem) bool { return p.Path == f.Path && p.Severity == manifest.Error }
		if slices.ContainsFunc(before, isError) && !slices.ContainsFunc(now, isError) {
			log.Info("all errors in a manifest were corrected", "file", f.Path)
		}
	}
	for _, p := range now {
		if slices.Contains(before, p) {
			continue
		}
		level := slog.LevelWarn
		if p.Severity == manifest.Error {
			level = slog.LevelError
		}
		log.Log(context.Background(), level, "manifest problem found", "at", p.Location(), "problem", p.Text())
	}
}
