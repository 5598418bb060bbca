package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"podd/cmd/podd/internal/tracing/tracingtest"
)

// startProvider returns a Provider that sends spans to a collector, the collector, and the log of the
// Provider. Tests call it in a bubble of synctest. The timeouts of the Provider cannot expire on a busy
// machine, because the clock of the bubble stands still while the collector waits for connections.
func startProvider(t *testing.T, ratio float64) (*Provider, *tracingtest.Collector, *bytes.Buffer) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	p, err := New(Options{Endpoint: ln.Addr().String(), SampleRatio: ratio, Service: "kubelet", Node: "n1", Version: "v9", Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return p, tracingtest.Serve(t, ln), log
}

// TestProvider checks the spans that a collector receives for a span and its child.
func TestProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, log := startProvider(t, 1)
		began := time.Now().Add(-time.Minute)
		ctx, parent := p.Tracer().Start(t.Context(), "parent", trace.WithTimestamp(began), trace.WithAttributes(attribute.String("a", "b\xff")))
		_, child := p.Tracer().Start(ctx, "child", trace.WithSpanKind(trace.SpanKindClient))
		child.SetAttributes(attribute.Int("n", 7), attribute.Bool("yes", true), attribute.StringSlice("list", []string{"x", "y"}), attribute.String("long", strings.Repeat("é", 5000)))
		child.SetStatus(codes.Error, "failed")
		child.AddEvent("ignored")
		child.End()
		child.End()
		child.SetName("too late")
		if child.IsRecording() || !parent.IsRecording() {
			t.Errorf("IsRecording: got %t for the ended child, %t for the parent; want false for the child, true for the parent", child.IsRecording(), parent.IsRecording())
		}
		parent.SetName("renamed")
		parent.End(trace.WithTimestamp(began.Add(time.Second)))
		p.Close()

		got := c.Spans()
		if len(got) != 2 {
			t.Fatalf("got %d spans, want 2", len(got))
		}
		inner, outer := got[0], got[1]
		if inner.Trace != outer.Trace || inner.Parent != outer.ID || outer.Parent != "" || inner.ID == outer.ID {
			t.Errorf("got child span %+v, parent span %+v; want the same trace, and the ID of the parent span as parent of the child span", inner, outer)
		}
		if outer.Name != "renamed" || inner.Name != "child" || inner.Kind != otlp.Span_SPAN_KIND_CLIENT || outer.Kind != otlp.Span_SPAN_KIND_INTERNAL {
			t.Errorf("got parent %q with kind %s, child %q with kind %s; want parent \"renamed\" with kind internal, child \"child\" with kind client", outer.Name, outer.Kind, inner.Name, inner.Kind)
		}
		if outer.StartTimeUnixNano != uint64(began.UnixNano()) || outer.EndTimeUnixNano != uint64(began.Add(time.Second).UnixNano()) {
			t.Errorf("times of the parent: got %d ns to %d ns, want %d ns to one second later", outer.StartTimeUnixNano, outer.EndTimeUnixNano, began.UnixNano())
		}
		if inner.Status.Code != otlp.Status_STATUS_CODE_ERROR || inner.Status.Message != "failed" || outer.Status.Code != otlp.Status_STATUS_CODE_UNSET {
			t.Errorf("got child status %v, parent status %v; want child status error with the message \"failed\", parent status unset", inner.Status, outer.Status)
		}
		if diff := cmp.Diff(map[string]string{"service.name": "kubelet", "service.version": "v9", "host.name": "n1"}, outer.Resource); diff != "" {
			t.Errorf("resource (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"a": "b"}, outer.Attrs); diff != "" {
			t.Errorf("attributes of the parent (-want +got):\n%s", diff)
		}
		if n := len(inner.Attrs["long"]); n != maxTextBytes || inner.Attrs["list"] != `["x","y"]` {
			t.Errorf("attributes of the child: got a text of %d bytes and list %s, want %d bytes and [\"x\",\"y\"]", n, inner.Attrs["list"], maxTextBytes)
		}
		if log.Len() > 0 {
			t.Errorf("got log %s, want none", log)
		}
	})
}

// TestProvider_Nil checks that the methods of a nil Provider do nothing.
func TestProvider_Nil(t *testing.T) {
	var p *Provider
	if p.Tracer() != nil {
		t.Error("got a tracer, want nil")
	}
	p.Close()
}

// TestSampling checks that a span with a parent is recorded if the parent is recorded. The ratio must
// determine how many of the spans without a parent are recorded.
func TestSampling(t *testing.T) {
	for _, c := range []struct {
		name   string
		ratio  float64
		parent trace.TraceFlags
		isRoot bool
		min    int
		max    int
	}{
		{"root, all", 1, 0, true, 1000, 1000},
		{"root, none", 0, 0, true, 0, 0},
		{"root, half", 0.5, 0, true, 350, 650},
		{"child of a recorded span", 0, trace.FlagsSampled, false, 1000, 1000},
		{"child of a span that is not recorded", 1, 0, false, 0, 0},
	} {
		p := &Provider{ratio: c.ratio, queue: make(chan *otlp.Span, maxQueuedSpans)}
		ctx := t.Context()
		if !c.isRoot {
			ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: c.parent}))
		}
		for range 1000 {
			spanCtx, s := p.Tracer().Start(ctx, "s")
			if self := s.SpanContext(); !self.IsValid() || self.IsSampled() != s.IsRecording() || !trace.SpanContextFromContext(spanCtx).Equal(self) {
				t.Fatalf("%s: got span context %+v, want a valid one that is also in the returned context, and is sampled if the span is recorded", c.name, self)
			}
			s.End()
		}
		if n := len(p.queue); n < c.min || n > c.max {
			t.Errorf("%s: got %d recorded spans of 1000, want %d to %d", c.name, n, c.min, c.max)
		}
	}
}

// TestProvider_Rejected checks the log if a collector rejects spans.
func TestProvider_Rejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, log := startProvider(t, 1)
		c.SetResponse(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "quota"}})
		for range 3 {
			_, s := p.Tracer().Start(t.Context(), "s")
			s.End()
		}
		p.Close()
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "the collector rejected 1 of 3 spans: quota") {
			t.Errorf("got log %s, want one line with the number of rejected spans and the reason \"quota\"", got)
		}
	})
}

// TestProvider_Unreachable checks that a Provider drops its spans if no collector listens. The log must
// contain one line, and Close must not wait longer than flushTimeout.
func TestProvider_Unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(bytes.Buffer)
		p, err := New(Options{Endpoint: "127.0.0.1:1", SampleRatio: 1, Log: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 * maxQueuedSpans {
			_, s := p.Tracer().Start(t.Context(), "s")
			s.End()
		}
		began := time.Now()
		p.Close()
		if took := time.Since(began); took > flushTimeout+5*time.Second {
			t.Errorf("Close took %v, want at most %v", took, flushTimeout+5*time.Second)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "sending spans failed") {
			t.Errorf("got log %s, want one line that contains \"sending spans failed\"", got)
		}
	})
}

// TestExporter_Recovers checks that only the first of several failures is logged, and only the first
// success after them.
func TestExporter_Recovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, log := startProvider(t, 1)
		defer p.Close()
		e := &exporter{conn: p.conn, endpoint: "here", log: slog.New(slog.NewTextHandler(log, nil))}
		canceled, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("stopped"))
		e.send(canceled, nil, 0)
		e.send(canceled, nil, 0)
		e.send(t.Context(), nil, 3)
		e.send(t.Context(), nil, 0)
		e.send(t.Context(), nil, 0)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[1], "succeeded again") {
			t.Errorf("got log lines %q, want a warning and a line that contains \"succeeded again\"", lines)
		}
	})
}
