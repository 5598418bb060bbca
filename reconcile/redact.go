package reconcile

import (
	"context"
	"log/slog"

	"podd/reconcile/event"
)

// takeEvents returns the events that were not reported yet, without private values, and removes
// them from w.events.
func (w *worker) takeEvents() []event.Event {
	all := w.events
	for i := range all {
		all[i].Message = w.state.Redact(all[i].Message)
	}
	w.events = nil
	return all
}

// redactHandler removes private values from log records. Only the goroutine of the worker may use
// it, because redact reads the state of the worker.
type redactHandler struct {
	slog.Handler
	redact func(string) string
}

// Handle implements slog.Handler.
func (h redactHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(h.redact(v))
		case error:
			a.Value = slog.StringValue(h.redact(v.Error()))
		}
		out.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h redactHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redactHandler{h.Handler.WithAttrs(attrs), h.redact}
}

// WithGroup implements slog.Handler.
func (h redactHandler) WithGroup(name string) slog.Handler {
	return redactHandler{h.Handler.WithGroup(name), h.redact}
}
