package logging

import (
	"context"
	"log/slog"
	"runtime"

	"podd/cmd/podd/internal/config"
)

// A fileHandler drops the records below the level of their source file. The field level applies to
// source files that no pattern in the field files matches.
type fileHandler struct {
	slog.Handler // must have no level of its own
	level        *Level
	files        []config.FileVerbosity
}

// Enabled implements slog.Handler. It permits every level that is enabled for any file, because the
// source file of the record is not known yet.
func (h fileHandler) Enabled(_ context.Context, level slog.Level) bool {
	lowest := h.level.Level()
	for _, f := range h.files {
		lowest = min(lowest, h.level.forVerbosity(f.Verbosity))
	}
	return level >= lowest
}

// Handle implements slog.Handler.
func (h fileHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < h.levelOf(sourceFile(r.PC)) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h fileHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h fileHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// levelOf returns the level of a source file. As in klog, the level of a file can be lower than that of
// the log, but not higher.
func (h fileHandler) levelOf(file string) slog.Level {
	level := h.level.Level()
	for _, f := range h.files {
		if f.Matches(file) {
			return min(level, h.level.forVerbosity(f.Verbosity))
		}
	}
	return level
}

// sourceFile returns the path of the source file of a program counter.
func sourceFile(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return frame.File
}
