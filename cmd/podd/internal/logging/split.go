package logging

import (
	"context"
	"log/slog"
)

// A splitHandler writes warnings and errors with one handler, and all other records with another.
type splitHandler struct{ info, errors slog.Handler }

// Enabled implements slog.Handler.
func (h splitHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.choose(level).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h splitHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.choose(r.Level).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h splitHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return splitHandler{h.info.WithAttrs(attrs), h.errors.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h splitHandler) WithGroup(name string) slog.Handler {
	return splitHandler{h.info.WithGroup(name), h.errors.WithGroup(name)}
}

// choose returns the handler for a level.
func (h splitHandler) choose(level slog.Level) slog.Handler {
	if level >= slog.LevelWarn {
		return h.errors
	}
	return h.info
}
