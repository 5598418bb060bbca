package gctrace

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// TestRound checks that a round has a span, which is in the context of the round, and that the span of a
// round that fails has an error without its text. Without a tracer, the round has no span.
func TestRound(t *testing.T) {
	failure := errors.New("PASSWORD=hunter2")
	for name, c := range map[string]struct {
		err  error
		want sdk.Status
	}{
		"success": {nil, sdk.Status{Code: codes.Unset}},
		"failure": {failure, sdk.Status{Code: codes.Error}},
	} {
		spans := tracetest.NewSpanRecorder()
		tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
		var inRound trace.SpanContext
		err := Round(t.Context(), tracer, Images, func(ctx context.Context) error {
			inRound = trace.SpanContextFromContext(ctx)
			return c.err
		})
		if !errors.Is(err, c.err) {
			t.Errorf("%s: got error %v, want %v", name, err, c.err)
		}
		ended := spans.Ended()
		if len(ended) != 1 {
			t.Fatalf("%s: got %d spans, want 1", name, len(ended))
		}
		if s := ended[0]; s.Name() != Images || s.Status() != c.want || !s.SpanContext().Equal(inRound) {
			t.Errorf("%s: got span %s with status %+v, want span %s with status %+v in the context of the round", name, s.Name(), s.Status(), Images, c.want)
		}
	}
	err := Round(t.Context(), nil, Images, func(ctx context.Context) error {
		if trace.SpanContextFromContext(ctx).IsValid() {
			t.Error("without a tracer: got a span, want none")
		}
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("without a tracer: got error %v, want %v", err, failure)
	}
}
