// Package tracing records podd's spans and sends them to an OpenTelemetry collector, by OTLP over
// gRPC.
//
//	router, garbage collection, cri.Client, cluster, endpoints
//	    └──▶ Tracer ──▶ sampling ──▶ queue ──▶ exporter ──▶ collector
//
// The package implements the interfaces of OpenTelemetry's API. It does not use OpenTelemetry's SDK
// and exporter, because they make the binary 1.1 MB larger and podd needs only a small part of them:
// spans have no events and links.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// maxQueuedSpans is the maximum number of ended spans that wait for their export. Further spans
	// are dropped.
	maxQueuedSpans = 2048
	// maxBatchSpans is the maximum number of spans in one export.
	maxBatchSpans = 512
	// batchInterval is the time for which an export waits for further spans.
	batchInterval = time.Second
	// flushTimeout is the maximum time for which Close waits for the collector.
	flushTimeout = 2 * time.Second
)

// Options configure a Provider. Log is required.
type Options struct {
	// Endpoint is the address of the collector as a target of gRPC, such as "localhost:4317".
	Endpoint string
	// SampleRatio is the part of the traces that are recorded, from 0 to 1. It applies to traces that
	// begin in podd. A trace of a client is recorded if the client records it.
	SampleRatio float64
	// Service is the name by which queries find the spans. Node is the name of the node, and Version the
	// version of podd.
	Service, Node, Version string
	Log                    *slog.Logger
}

// A Provider records spans and sends them to a collector. A nil *Provider records nothing.
type Provider struct {
	ratio   float64
	queue   chan *otlp.Span // ended spans; the capacity is maxQueuedSpans
	dropped atomic.Int64    // number of spans that did not fit into the queue since the last export

	conn   *grpc.ClientConn
	stop   chan struct{} // closed by Close
	cancel context.CancelFunc
	done   chan struct{} // closed when export has returned
}

// New returns a Provider. It connects to the collector when there are spans. If the collector is
// unreachable, spans are dropped. The caller must call Close.
func New(o Options) (*Provider, error) {
	conn, err := grpc.NewClient(o.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("tracing.endpoint %q: %w", o.Endpoint, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Provider{
		ratio: o.SampleRatio, queue: make(chan *otlp.Span, maxQueuedSpans),
		conn: conn, stop: make(chan struct{}), cancel: cancel, done: make(chan struct{}),
	}
	e := &exporter{conn: conn, endpoint: o.Endpoint, resource: newResource(&o), log: o.Log}
	go func() {
		defer close(p.done)
		p.export(ctx, e)
	}()
	return p, nil
}

// Tracer returns the tracer of p, or nil if p is nil.
func (p *Provider) Tracer() trace.Tracer {
	if p == nil {
		return nil
	}
	return tracer{provider: p}
}

// Close sends the remaining spans and closes the connection. It waits up to flushTimeout. Spans that
// end later are dropped.
func (p *Provider) Close() {
	if p == nil {
		return
	}
	close(p.stop)
	timer := time.AfterFunc(flushTimeout, p.cancel)
	<-p.done
	timer.Stop()
	p.cancel()
	_ = p.conn.Close() // the error means that it is already closed
}

// enqueue adds a span to the queue, or drops it if the queue is full.
func (p *Provider) enqueue(s *otlp.Span) {
	select {
	case p.queue <- s:
	default:
		p.dropped.Add(1)
	}
}

// export sends the spans in the queue in batches, until Close is called and the queue is empty, or
// ctx is done.
func (p *Provider) export(ctx context.Context, e *exporter) {
	for ctx.Err() == nil {
		batch, ok := p.nextBatch()
		if !ok {
			return
		}
		e.send(ctx, batch, p.dropped.Swap(0))
	}
}

// nextBatch waits for a span, and then up to batchInterval for further spans. ok is false if Close was
// called and the queue is empty.
func (p *Provider) nextBatch() (batch []*otlp.Span, ok bool) {
	select {
	case s := <-p.queue:
		batch = append(batch, s)
	case <-p.stop:
		batch = p.takeQueued(nil)
		return batch, len(batch) > 0
	}
	timer := time.NewTimer(batchInterval)
	defer timer.Stop()
	for len(batch) < maxBatchSpans {
		select {
		case s := <-p.queue:
			batch = append(batch, s)
		case <-timer.C:
			return batch, true
		case <-p.stop:
			return p.takeQueued(batch), true
		}
	}
	return batch, true
}

// takeQueued adds spans from the queue to batch without waiting.
func (p *Provider) takeQueued(batch []*otlp.Span) []*otlp.Span {
	for len(batch) < maxBatchSpans {
		select {
		case s := <-p.queue:
			batch = append(batch, s)
		default:
			return batch
		}
	}
	return batch
}
