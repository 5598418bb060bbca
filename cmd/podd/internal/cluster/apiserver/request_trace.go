package apiserver

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A tracingTransport creates an OpenTelemetry span for each request, and passes the context of the span
// to the API server in the format of W3C Trace Context. The names in the span are those of OpenTelemetry's
// semantic conventions for HTTP. The span ends when the header of the response arrives, because the
// response to a watch lasts for minutes.
//
// The span contains a template instead of the path, and no query. It contains no text of errors, because
// the URL of the API server and of a proxy may be secret.
type tracingTransport struct {
	next     http.RoundTripper
	tracer   trace.Tracer
	basePath string // the path in the URL of the API server, without a slash at the end
}

// RoundTrip implements http.RoundTripper.
func (t *tracingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(r.Context(), r.Method, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	if span.IsRecording() {
		t.recordRequest(span, r)
	}
	r = r.Clone(ctx) // a RoundTripper must not modify the request
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	response, err := t.next.RoundTrip(r)
	if err != nil {
		recordFailure(span, fmt.Sprintf("%T", err))
		return response, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if response.StatusCode >= http.StatusBadRequest {
		recordFailure(span, strconv.Itoa(response.StatusCode))
	}
	return response, nil
}

// recordRequest adds the attributes of a request to a span.
func (t *tracingTransport) recordRequest(span trace.Span, r *http.Request) {
	span.SetAttributes(attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname()))
	if port, err := strconv.Atoi(r.URL.Port()); err == nil {
		span.SetAttributes(attribute.Int("server.port", port))
	}
	if path, ok := strings.CutPrefix(r.URL.Path, t.basePath); ok {
		if template := urlTemplate(path); template != "" {
			span.SetName(r.Method + " " + template)
			span.SetAttributes(attribute.String("url.template", template))
		}
	}
}

// recordFailure adds a failure to a span. kind is a status code or the type of an error.
func recordFailure(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, "")
}

// urlTemplate returns a path of the Kubernetes API in which {namespace} and {name} replace the names of
// objects. It returns "" if the path is not the path of a resource.
func urlTemplate(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	versionParts := map[string]int{"api": 2, "apis": 3}[parts[0]] // /api/VERSION or /apis/GROUP/VERSION
	if versionParts == 0 || len(parts) <= versionParts {
		return ""
	}
	resource := parts[versionParts:] // changes of its elements also change parts
	if resource[0] == "namespaces" && len(resource) > 2 {
		resource[1] = "{namespace}"
		resource = resource[2:]
	}
	if len(resource) > 3 { // deeper than RESOURCE/NAME/SUBRESOURCE
		return ""
	}
	if len(resource) > 1 {
		resource[1] = "{name}"
	}
	return "/" + strings.Join(parts, "/")
}

// basePath returns the path in the URL of an API server, without a slash at the end.
func basePath(host string) string {
	u, err := url.Parse(host)
	if err != nil {
		return "" // host is a host and a port
	}
	return strings.TrimRight(u.Path, "/")
}
