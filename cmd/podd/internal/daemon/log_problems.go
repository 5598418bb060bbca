package daemon

import (
	"context"
	"log/slog"
	"slices"

	"podd/manifest"
)

// A fileReport contains the problems and the states of all files at one moment.
type fileReport struct {
	problems []manifest.Problem
	files    []manifest.FileState
}

// hasError reports whether a file has an error.
func (r fileReport) hasError(path string) bool {
	return slices.ContainsFunc(r.problems, func(p manifest.Problem) bool { return p.Path == path && p.Severity == manifest.Error })
}

// isPresent reports whether a file exists.
func (r fileReport) isPresent(path string) bool {
	return slices.ContainsFunc(r.files, func(f manifest.FileState) bool { return f.Path == path && !f.IsMissing })
}

// logProblems logs each problem that is in current and not in previous. It also logs each file that
// has an error in previous and no error in current, because the file was corrected or removed.
func logProblems(log *slog.Logger, current, previous fileReport) {
	for _, f := range previous.files {
		if !previous.hasError(f.Path) || current.hasError(f.Path) {
			continue
		}
		if current.isPresent(f.Path) {
			log.Info("all errors in a manifest were corrected", "file", f.Path)
		} else {
			log.Info("a manifest with errors was removed", "file", f.Path)
		}
	}
	for _, p := range current.problems {
		if slices.Contains(previous.problems, p) {
			continue
		}
		level := slog.LevelWarn
		if p.Severity == manifest.Error {
			level = slog.LevelError
		}
		log.Log(context.Background(), level, "manifest problem found", "at", p.Location(), "problem", p.Text())
	}
}
