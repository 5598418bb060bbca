package cri

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// TestDial_Traced checks that a call has a span, that the runtime receives the context of the span,
// and that the span does not contain the text of an error.
func TestDial_Traced(t *testing.T) {
	var received []string
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		header, _ := metadata.FromIncomingContext(stream.Context())
		received = append(received, strings.Join(header.Get("traceparent"), ","))
		return status.Error(grpccodes.NotFound, "PASSWORD=hunter2")
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(ln) // returns after Stop
	}()
	t.Cleanup(func() { server.Stop(); <-done })

	spans := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
	c, err := Dial(Options{Endpoint: socket, Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, parent := tracer.Start(t.Context(), "parent")
	if err := c.RemovePodSandbox(ctx, "s1"); err != nil {
		t.Logf("RemovePodSandbox: %v", err)
	}
	ended := spans.Ended()
	if len(ended) != 1 {
		t.Fatalf("spans of one call: got %d, want 1", len(ended))
	}
	s := ended[0]
	const name = "runtime.v1.RuntimeService/RemovePodSandbox"
	if s.Name() != name || s.SpanKind() != trace.SpanKindClient || s.Parent().SpanID() != parent.SpanContext().SpanID() {
		t.Errorf("span: got name %s, kind %v, parent %v; want name %s, kind %v, parent %v", s.Name(), s.SpanKind(), s.Parent().SpanID(), name, trace.SpanKindClient, parent.SpanContext().SpanID())
	}
	if got := s.Status(); got.Code != codes.Error || got.Description != "NOT_FOUND" {
		t.Errorf("status of the span: got %+v, want an error with the description NOT_FOUND", got)
	}
	want := attribute.NewSet(attribute.String("rpc.system.name", "grpc"), attribute.String("rpc.method", name), attribute.String("rpc.response.status_code", "NOT_FOUND"))
	if got := attribute.NewSet(s.Attributes()...); !got.Equals(&want) {
		t.Errorf("attributes of the span: got %v, want %v", got.ToSlice(), want.ToSlice())
	}
	id := s.SpanContext()
	if want := "00-" + id.TraceID().String() + "-" + id.SpanID().String() + "-01"; len(received) != 1 || received[0] != want {
		t.Errorf("header traceparent at the runtime: got %q, want %s", received, want)
	}
}

func TestCanonicalCode(t *testing.T) {
	for code, want := range map[grpccodes.Code]string{
		grpccodes.OK: "OK", grpccodes.Canceled: "CANCELLED", grpccodes.Unknown: "UNKNOWN", grpccodes.DeadlineExceeded: "DEADLINE_EXCEEDED",
	} {
		if got := canonicalCode(code); got != want {
			t.Errorf("%v: got %s, want %s", code, got, want)
		}
	}
}
