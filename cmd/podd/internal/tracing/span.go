package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
)

// A tracer implements trace.Tracer.
type tracer struct {
	embedded.Tracer
	provider *Provider
}

// Start implements trace.Tracer. It ignores links.
func (t tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(options...)
	parent := trace.SpanContextFromContext(ctx)
	if config.NewRoot() {
		parent = trace.SpanContext{}
	}
	self := newSpanContext(parent, t.provider.ratio)
	if !self.IsSampled() {
		ctx = trace.ContextWithSpanContext(ctx, self)
		return ctx, trace.SpanFromContext(ctx)
	}
	s := &span{context: self, provider: t.provider, data: newSpan(self, parent, name, config)}
	return trace.ContextWithSpan(ctx, s), s
}

// newSpanContext returns the context of a new span. The span has the trace and the sampling decision of
// its parent. If parent is not valid, it begins a trace, which is sampled with the probability
// ratio.
func newSpanContext(parent trace.SpanContext, ratio float64) trace.SpanContext {
	c := trace.SpanContextConfig{TraceID: parent.TraceID(), TraceFlags: parent.TraceFlags(), TraceState: parent.TraceState()}
	binary.BigEndian.PutUint64(c.SpanID[:], rand.Uint64()|1) // an ID of zero is not valid
	if !parent.IsValid() {
		binary.BigEndian.PutUint64(c.TraceID[:8], rand.Uint64())
		binary.BigEndian.PutUint64(c.TraceID[8:], rand.Uint64()|1)
		c.TraceFlags = trace.TraceFlags(0).WithSampled(rand.Float64() < ratio)
	}
	return trace.NewSpanContext(c)
}

// newSpan returns the data of a span that begins.
func newSpan(self, parent trace.SpanContext, name string, config trace.SpanConfig) *otlp.Span {
	id, spanID := self.TraceID(), self.SpanID()
	data := &otlp.Span{
		TraceId: id[:], SpanId: spanID[:], TraceState: self.TraceState().String(),
		Flags: uint32(self.TraceFlags()) | uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK),
		Name:  newText(name), Kind: newKind(config.SpanKind()), StartTimeUnixNano: newTime(config.Timestamp()),
		Attributes: newAttributes(config.Attributes()), Status: &otlp.Status{},
	}
	if parent.IsValid() {
		parentID := parent.SpanID()
		data.ParentSpanId = parentID[:]
	}
	if parent.IsRemote() {
		data.Flags |= uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return data
}

// A span is a recorded span. It implements trace.Span. Events and links are ignored, and TracerProvider
// returns a provider that records nothing.
type span struct {
	noop.Span
	context  trace.SpanContext
	provider *Provider

	mu   sync.Mutex // guards data
	data *otlp.Span // nil after End
}

// update calls change with the data of s, unless s has ended.
func (s *span) update(change func(*otlp.Span)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data != nil {
		change(s.data)
	}
}

// SpanContext implements trace.Span.
func (s *span) SpanContext() trace.SpanContext { return s.context }

// IsRecording implements trace.Span.
func (s *span) IsRecording() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data != nil
}

// SetName implements trace.Span.
func (s *span) SetName(name string) {
	s.update(func(d *otlp.Span) { d.Name = newText(name) })
}

// SetAttributes implements trace.Span. Each attribute must be set only once.
func (s *span) SetAttributes(attributes ...attribute.KeyValue) {
	s.update(func(d *otlp.Span) { d.Attributes = append(d.Attributes, newAttributes(attributes)...) })
}

// SetStatus implements trace.Span.
func (s *span) SetStatus(code codes.Code, description string) {
	s.update(func(d *otlp.Span) {
		d.Status = &otlp.Status{}
		switch code {
		case codes.Ok:
			d.Status.Code = otlp.Status_STATUS_CODE_OK
		case codes.Error:
			d.Status.Code, d.Status.Message = otlp.Status_STATUS_CODE_ERROR, newText(description)
		}
	})
}

// End implements trace.Span.
func (s *span) End(options ...trace.SpanEndOption) {
	config := trace.NewSpanEndConfig(options...)
	s.update(func(d *otlp.Span) {
		d.EndTimeUnixNano = newTime(config.Timestamp())
		s.data = nil
		s.provider.enqueue(d)
	})
}

func newKind(k trace.SpanKind) otlp.Span_SpanKind {
	switch k {
	case trace.SpanKindServer:
		return otlp.Span_SPAN_KIND_SERVER
	case trace.SpanKindClient:
		return otlp.Span_SPAN_KIND_CLIENT
	}
	return otlp.Span_SPAN_KIND_INTERNAL
}

// newTime returns t in nanoseconds since 1970. A zero time means now.
func newTime(t time.Time) uint64 {
	if t.IsZero() {
		t = time.Now()
	}
	return uint64(max(t.UnixNano(), 0))
}

func newAttributes(attributes []attribute.KeyValue) (out []*common.KeyValue) {
	for _, a := range attributes {
		out = append(out, &common.KeyValue{Key: newText(string(a.Key)), Value: newValue(a.Value)})
	}
	return out
}

// newValue converts a value of an attribute. Types that podd does not use become text.
func newValue(v attribute.Value) *common.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.STRING:
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: newText(v.AsString())}}
	}
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: newText(v.String())}}
}

// maxTextBytes limits the texts of a span, because a runtime can return long errors.
const maxTextBytes = 1024

// newText returns at most maxTextBytes of a text, as valid UTF-8, which protobuf requires.
func newText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxTextBytes)], "")
}
