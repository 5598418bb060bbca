// Package gctrace creates the OpenTelemetry spans of the garbage collection.
package gctrace

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// The names of the spans are those of the kubelet.
const (
	Images     = "Images/GarbageCollect"
	Containers = "Containers/GarbageCollect"
)

// Round calls collect in a span with a name, and returns the result of collect. The calls to the runtime
// that collect makes with its context are children of the span. The span contains no text of an error,
// because runtimes quote environment variables in errors. If tracer is nil, there is no span.
func Round(ctx context.Context, tracer trace.Tracer, name string, collect func(context.Context) error) error {
	if tracer == nil {
		return collect(ctx)
	}
	ctx, span := tracer.Start(ctx, name)
	defer span.End()
	err := collect(ctx)
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	return err
}
