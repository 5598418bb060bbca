package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
)

// newLog says what is configured to be said, from quiet on when nothing is.
func newLog(w io.Writer, cfg *config.Config, quiet slog.Level) (*slog.Logger, *logLevel) {
	level := &logLevel{quiet: quiet}
	level.set(cfg.Verbosity)
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), level
	}
	return slog.New(newLineHandler(w, level)), level
}

// logLevel is how much is said. Safe for concurrent use.
type logLevel struct {
	slog.LevelVar
	quiet slog.Level
}

// set takes klog's verbosity.
func (l *logLevel) set(verbosity int) {
	switch {
	case verbosity >= 4:
		l.Set(slog.LevelDebug)
	case verbosity > 0:
		l.Set(slog.LevelInfo)
	default:
		l.Set(l.quiet)
	}
}

// logNew says each problem of the manifests once, when it comes up, and which of
// the files, that are there yet, have no error any more. It returns the problems
// for the next time.
func logNew(log *slog.Logger, now, before []manifest.Problem, files []manifest.FileState) []manifest.Problem {
	for _, f := range files {
		errs := func(p manifest.Problem) bool { return p.Path == f.Path && p.Severity == manifest.Error }
		if slices.ContainsFunc(before, errs) && !slices.ContainsFunc(now, errs) {
			log.Info("mended", "at", f.Path)
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
		log.Log(context.Background(), level, "manifest", "at", p.Place(), "why", p.What())
	}
	return now
}

// lineHandler writes "14:02:11 stopping pod=default/web why=changed": the time
// and the word first, then the attributes as slog's text handler has them.
type lineHandler struct {
	attrs slog.Handler // writes into out.buf
	out   *lineWriter
}

type lineWriter struct {
	mu  sync.Mutex // guards all following fields
	w   io.Writer
	buf bytes.Buffer
}

func newLineHandler(w io.Writer, level slog.Leveler) lineHandler {
	out := &lineWriter{w: w}
	attrs := slog.NewTextHandler(&out.buf, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			builtin := a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey
			if len(groups) == 0 && builtin || a.Value.String() == "" {
				return slog.Attr{}
			}
			return a
		},
	})
	return lineHandler{attrs, out}
}

// Enabled implements slog.Handler.
func (h lineHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.attrs.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lineHandler{h.attrs.WithAttrs(attrs), h.out}
}

// WithGroup implements slog.Handler.
func (h lineHandler) WithGroup(name string) slog.Handler {
	return lineHandler{h.attrs.WithGroup(name), h.out}
}

// Handle implements slog.Handler.
func (h lineHandler) Handle(ctx context.Context, r slog.Record) error {
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	h.out.buf.Reset()
	h.out.buf.WriteString(r.Time.Format("15:04:05 "))
	if r.Level >= slog.LevelWarn {
		h.out.buf.WriteString(r.Level.String() + " ")
	}
	h.out.buf.WriteString(r.Message + " ")
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	_, err := h.out.w.Write(h.out.buf.Bytes())
	return err
}
