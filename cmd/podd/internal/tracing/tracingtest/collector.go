// Package tracingtest contains an OpenTelemetry collector for tests.
package tracingtest

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/grpc"
)

// A Collector receives spans.
type Collector struct {
	mu       sync.Mutex // guards the fields below
	spans    []Span
	response *collector.ExportTraceServiceResponse
}

// A Span is a received span. IDs are in hexadecimal.
type Span struct {
	Trace, ID, Parent string
	Resource, Attrs   map[string]string
	*otlp.Span
}

// Serve starts a Collector on a listener and stops it at the end of the test.
func Serve(t testing.TB, ln net.Listener) *Collector {
	t.Helper()
	c := &Collector{response: &collector.ExportTraceServiceResponse{}}
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "opentelemetry.proto.collector.trace.v1.TraceService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var r collector.ExportTraceServiceRequest
			if err := decode(&r); err != nil {
				return nil, err
			}
			return c.receive(&r), nil
		}}},
	}, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ln) // returns after Stop
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	return c
}

// SetResponse sets the response to all further exports.
func (c *Collector) SetResponse(r *collector.ExportTraceServiceResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.response = r
}

// Spans returns all spans that were received.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

func (c *Collector) receive(r *collector.ExportTraceServiceRequest) *collector.ExportTraceServiceResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ofResource := range r.ResourceSpans {
		for _, ofScope := range ofResource.ScopeSpans {
			for _, s := range ofScope.Spans {
				c.spans = append(c.spans, Span{
					Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
					Resource: attributes(ofResource.Resource.GetAttributes()), Attrs: attributes(s.Attributes), Span: s,
				})
			}
		}
	}
	return c.response
}

// attributes returns the attributes as texts.
func attributes(pairs []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range pairs {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		default:
			out[a.Key] = a.Value.String()
		}
	}
	return out
}
