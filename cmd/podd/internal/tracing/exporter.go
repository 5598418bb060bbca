package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// exportMethod is the method of a collector that receives spans.
const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// exportTimeout is the maximum time for which one export waits for the collector, as in
// OpenTelemetry's exporter.
const exportTimeout = 10 * time.Second

// An exporter sends spans to a collector. Only one goroutine may use it.
type exporter struct {
	conn      *grpc.ClientConn
	endpoint  string
	resource  *resource.Resource
	log       *slog.Logger
	isFailing bool // whether the last export failed
}

// newResource returns the OpenTelemetry resource of all spans, which describes this podd.
func newResource(o *Options) *resource.Resource {
	return &resource.Resource{Attributes: newAttributes([]attribute.KeyValue{
		attribute.String("service.name", o.Service), attribute.String("service.version", o.Version), attribute.String("host.name", o.Node),
	})}
}

// send sends spans to the collector. It waits until the collector is reachable, but not longer than
// exportTimeout. dropped is the number of spans that are missing because the queue was full. send
// logs an error only when exports begin to fail.
func (e *exporter) send(ctx context.Context, spans []*otlp.Span, dropped int64) {
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	request := &collector.ExportTraceServiceRequest{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   e.resource,
		ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "podd"}, Spans: spans}},
	}}}
	var response collector.ExportTraceServiceResponse
	err := e.conn.Invoke(ctx, exportMethod, request, &response, grpc.WaitForReady(true))
	partial := response.GetPartialSuccess()
	switch {
	case err != nil:
		err = errors.New(status.Convert(err).Message())
	case partial.GetRejectedSpans() > 0:
		err = fmt.Errorf("the collector rejected %d of %d spans: %.200s", partial.GetRejectedSpans(), len(spans), partial.GetErrorMessage())
	case dropped > 0:
		err = fmt.Errorf("%d spans were dropped, because the collector is too slow", dropped)
	}
	if isFailing := err != nil; isFailing != e.isFailing {
		e.isFailing = isFailing
		if isFailing {
			e.log.Warn("sending spans failed; dropping spans until the collector accepts them", "endpoint", e.endpoint, "err", err)
		} else {
			e.log.Info("sending spans succeeded again", "endpoint", e.endpoint)
		}
	}
}
