// Package logging formats the log of podd: one line per event, as text or JSON.
package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"sync"

	"podd/cmd/podd/internal/config"
)

// Streams are the outputs of a log. Errors receives warnings and errors, and Info receives all other
// records. If Info is nil, Errors receives the whole log.
type Streams struct{ Info, Errors io.Writer }

// New returns a logger to w with the configured format and verbosity. The returned Level can change
// the level of the logger later. baseLevel is the level for verbosity 0.
func New(w Streams, cfg *config.Logging, baseLevel slog.Level) (*slog.Logger, *Level) {
	level := &Level{defaultLevel: baseLevel}
	level.SetVerbosity(cfg.Verbosity)
	if len(cfg.FileVerbosity) == 0 {
		return slog.New(newHandler(w, cfg, level)), level
	}
	return slog.New(fileHandler{newHandler(w, cfg, allLevels), level, cfg.FileVerbosity}), level
}

// allLevels is the level of a handler that writes each record.
const allLevels = slog.Level(math.MinInt)

// newHandler returns a handler that writes the records of a level in the configured format.
func newHandler(w Streams, cfg *config.Logging, level slog.Leveler) slog.Handler {
	if w.Info == nil {
		return newFormatHandler(w.Errors, cfg, level)
	}
	return splitHandler{newFormatHandler(w.Info, cfg, level), newFormatHandler(w.Errors, cfg, level)}
}

func newFormatHandler(w io.Writer, cfg *config.Logging, level slog.Leveler) slog.Handler {
	if cfg.LogFormat == "json" {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	}
	return NewLineHandler(w, level)
}

// A Level is the current level of a log. It is safe for concurrent use.
type Level struct {
	slog.LevelVar
	defaultLevel slog.Level // level for verbosity 0
}

// SetVerbosity sets the level for a verbosity of klog.
func (l *Level) SetVerbosity(verbosity int) { l.Set(l.forVerbosity(verbosity)) }

// forVerbosity returns the level for a verbosity of klog: debug for 4 and above, info for 1 to 3, and
// otherwise the level that was passed to New.
func (l *Level) forVerbosity(verbosity int) slog.Level {
	switch {
	case verbosity >= 4:
		return slog.LevelDebug
	case verbosity > 0:
		return slog.LevelInfo
	}
	return l.defaultLevel
}

// A lineHandler writes each record as a line such as
//
//	14:02:11 WARN reading the manifest failed path=web.yaml
//
// A line contains the time, the level of a warning or error, the message, and the attributes in
// the format of slog's text handler.
type lineHandler struct {
	attrs slog.Handler // writes the attributes to out.buf
	out   *lineWriter
}

// A lineWriter writes the lines of all handlers of a log.
type lineWriter struct {
	mu  sync.Mutex // guards the following fields
	w   io.Writer
	buf bytes.Buffer
}

// NewLineHandler returns a handler that writes each record to w as one line. It ignores records
// below level.
func NewLineHandler(w io.Writer, level slog.Leveler) lineHandler {
	out := &lineWriter{w: w}
	attrs := slog.NewTextHandler(&out.buf, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			isBuiltin := a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey
			if len(groups) == 0 && isBuiltin || a.Value.String() == "" {
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
