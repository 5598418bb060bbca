package reconcile

import (
	"context"
	"log/slog"

	"podd/reconcile/event"
)

// takeEvents removes the events that were not reported yet from w.events. It returns them without
// private values.
func (w *worker) takeEvents() []event.Event {
	events := w.events
	for i := range events {
		events[i].Message = w.state.Redact(events[i].Message)
	}
	w.events = nil
	return events
}

// redactHandler removes private values from log records. Only the goroutine of the worker may use
// it, because redact reads the state of the worker.
type redactHandler struct {
	slog.Handler
	redact func(string) string
}

// Handle implements slog.Handler.
func (h redactHandler) Handle(ctx context.Context, r slog.Record) error {
	redacted := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(h.redact(v))
		case error:
			a.Value = slog.StringValue(h.redact(v.Error()))
		}
		redacted.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, redacted)
}

// WithAttrs implements slog.Handler.
func (h redactHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redactHandler{h.Handler.WithAttrs(attrs), h.redact}
}

// WithGroup implements slog.Handler.
func (h redactHandler) WithGroup(name string) slog.Handler {
	return redactHandler{h.Handler.WithGroup(name), h.redact}
}
