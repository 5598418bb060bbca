package cri

import (
	"context"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// traceCalls returns an interceptor that creates a span for every call, with the names of
// OpenTelemetry's semantic conventions for RPCs, and passes the context of the span to the runtime.
// The span contains the code of an error but not its text, because runtimes quote environment
// variables in errors.
func traceCalls(tracer trace.Tracer) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		name := strings.TrimPrefix(method, "/")
		ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("rpc.system.name", "grpc"), attribute.String("rpc.method", name)))
		defer span.End()
		err := call(withTraceContext(ctx), method, req, reply, conn, options...)
		if span.IsRecording() {
			code := canonicalCode(status.Code(err))
			span.SetAttributes(attribute.String("rpc.response.status_code", code))
			if err != nil {
				span.SetStatus(codes.Error, code)
			}
		}
		return err
	}
}

// canonicalCode returns the name of a code in the specification of gRPC, such as NOT_FOUND. The names
// in package codes are different.
func canonicalCode(c grpccodes.Code) string {
	switch c {
	case grpccodes.OK:
		return "OK"
	case grpccodes.Canceled:
		return "CANCELLED"
	}
	var name strings.Builder
	for i, letter := range c.String() {
		if i > 0 && unicode.IsUpper(letter) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(letter))
	}
	return name.String()
}

// withTraceContext returns a context for a call to which the context of the span in ctx is added, in
// the format of W3C Trace Context.
func withTraceContext(ctx context.Context) context.Context {
	fields := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, fields)
	for name, value := range fields {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	return ctx
}
