// Package httptrace creates OpenTelemetry spans for HTTP requests.
package httptrace

import (
	"bufio"
	"net"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Handler returns a handler that creates a span for each request to h, with the names of
// OpenTelemetry's semantic conventions for HTTP. The span contains the pattern of h that matches the
// request, but not the path and the query, because these may contain commands and secrets. If
// tracer is nil, Handler returns h.
//
// The span is a child of the client's span if the request contains one in the format of W3C Trace
// Context. If the client records its span, the span of the request is recorded, too. h must
// therefore only receive requests of authorized clients.
func Handler(tracer trace.Tracer, h http.Handler) http.Handler {
	if tracer == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		method := knownMethod(r.Method)
		ctx, span := tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", method)))
		defer span.End()
		if !span.IsRecording() {
			h.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		r = r.WithContext(ctx)
		recorder := &statusWriter{ResponseWriter: w}
		defer func() { recordResponse(span, method, r.Pattern, recorder.code) }()
		h.ServeHTTP(recorder, r)
	})
}

// recordResponse adds the route and the status code to a span. pattern is a pattern of
// http.ServeMux, such as "GET /pods", or "".
func recordResponse(span trace.Span, method, pattern string, code int) {
	if _, path, hasMethod := strings.Cut(pattern, " "); hasMethod {
		pattern = path
	}
	if pattern != "" {
		span.SetName(method + " " + pattern)
		span.SetAttributes(attribute.String("http.route", pattern))
	}
	if code != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", code))
	}
	if code >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// knownMethod returns a standard method, or "_OTHER" for any other, because clients must not be able
// to create an unlimited number of names.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "_OTHER"
}

// A statusWriter records the status code of a response. The code is 101 if the handler has taken over
// the connection, and 0 if the handler has sent no response.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 && code >= http.StatusOK {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the underlying ResponseWriter for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *statusWriter) Flush() { http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack implements http.Hijacker, for streams.
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.code = http.StatusSwitchingProtocols
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
