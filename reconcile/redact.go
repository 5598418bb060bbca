package reconcile

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/redact"
	"podd/manifest/refs"
	"podd/reconcile/effect"
	"podd/reconcile/event"
)

// redacted returns a text without the private values of the worker's versions and of the
// Secrets that these use, because an error of the runtime may quote any of them.
func (w *worker) redacted(text string) string {
	var pods []*v1.Pod
	for _, p := range []*manifest.Pod{w.in.Desired, w.in.Successor, w.in.Previous, w.replaced, w.publishedFrom} {
		if p != nil && !slices.Contains(pods, p.Spec) {
			pods = append(pods, p.Spec)
		}
	}
	text = redact.Text(text, pods...)
	for _, s := range []*refs.Resolved{w.supply, w.nextSupply, w.formerSupply, w.order.supply, w.order.earlierSupply} {
		if s != nil {
			text = redact.Data(text, slices.Collect(maps.Values(s.Secrets))...)
		}
	}
	return text
}

// redactedError is an error with a text that quotes no private value. errors.Is and
// errors.As treat it like the wrapped error.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }

// Unwrap returns the wrapped error, for errors.Is and errors.As.
func (e redactedError) Unwrap() error { return e.error }

// redactedResult returns a result without private values in its error and warning, so that
// the status, events and the log can show them.
func (w *worker) redactedResult(f effect.Result) effect.Result {
	if f.Err != nil {
		f.Err = redactedError{f.Err, w.redacted(f.Err.Error())}
	}
	if f.Warning != "" {
		f.Warning = w.redacted(f.Warning)
	}
	return f
}

// takeEvents returns the events that were not reported yet, and forgets them.
func (w *worker) takeEvents() []event.Event {
	all := w.events
	for i := range all {
		all[i].Message = w.redacted(all[i].Message)
	}
	w.events = nil
	return all
}

// redactHandler removes private values from log records. Only the goroutine of the worker
// that it belongs to may log with it.
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
