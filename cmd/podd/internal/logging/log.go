// Package logging formats the log of podd: one line per event, as text or JSON.
package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"

	"podd/cmd/podd/internal/config"
)

// New returns the configured logger and its level. quiet is the level if the verbosity is
// 0.
func New(w io.Writer, cfg *config.Config, quiet slog.Level) (*slog.Logger, *Level) {
	level := &Level{quiet: quiet}
	level.SetVerbosity(cfg.Verbosity)
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), level
	}
	return slog.New(NewLineHandler(w, level)), level
}

// Level is the current log level. It is safe for concurrent use.
type Level struct {
	slog.LevelVar
	quiet slog.Level // level of verbosity 0
}

// SetVerbosity sets the level that corresponds to a verbosity of klog.
func (l *Level) SetVerbosity(verbosity int) {
	switch {
	case verbosity >= 4:
		l.Set(slog.LevelDebug)
	case verbosity > 0:
		l.Set(slog.LevelInfo)
	default:
		l.Set(l.quiet)
	}
}

// lineHandler writes lines such as "14:02:11 stopping pod=default/web why=changed": the time,
// the level of warnings and errors, the message, and the attributes in the format of slog's
// text handler.
type lineHandler struct {
	attrs slog.Handler // writes into out.buf
	out   *lineWriter
}

// lineWriter is shared by all handlers of a log.
type lineWriter struct {
	mu  sync.Mutex // guards all following fields
	w   io.Writer
	buf bytes.Buffer
}

// NewLineHandler returns a handler that writes records of at least level to w as lines.
func NewLineHandler(w io.Writer, level slog.Leveler) lineHandler {
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
