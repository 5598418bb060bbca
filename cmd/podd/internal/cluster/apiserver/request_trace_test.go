package apiserver

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
)

// TestTracingTransport checks that each request to the API server has a span and passes the context of
// the span to the server. The span must not contain names of objects, queries, tokens, or the path in the
// URL of the server.
func TestTracingTransport(t *testing.T) {
	var received []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received = append(received, r.Header.Get("traceparent"))
		http.NotFound(w, r)
	}))
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
	o := &Options{ContentType: "application/json", QPS: 100, Burst: 100, Tracer: tracer, OnRequest: func(string, string, string) {}}
	c, err := New(&rest.Config{Host: s.URL + "/hunter2", BearerToken: "hunter2"}, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseConnections()
	ctx, parent := tracer.Start(t.Context(), "parent")
	if err := c.Core.Get().Namespace("hunter2").Resource("secrets").Name("hunter2").Param("fieldSelector", "hunter2").Do(ctx).Error(); err == nil {
		t.Error("GET of a missing Secret: got no error, want one")
	}
	c.CloseConnections()
	s.Close()
	if err := c.Heartbeats.Patch("application/json").Resource("nodes").Name("hunter2").SubResource("status").Do(ctx).Error(); err == nil {
		t.Error("PATCH after the server was closed: got no error, want one")
	}

	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("spans of two requests: got %d, want 2", len(ended))
	}
	server := []attribute.KeyValue{attribute.String("server.address", u.Hostname()), attribute.Int("server.port", port)}
	for i, want := range []struct {
		method, template string
		attrs            []attribute.KeyValue
	}{
		{"GET", "/api/v1/namespaces/{namespace}/secrets/{name}", []attribute.KeyValue{
			attribute.Int("http.response.status_code", 404), attribute.String("error.type", "404")}},
		{"PATCH", "/api/v1/nodes/{name}/status", []attribute.KeyValue{attribute.String("error.type", fmt.Sprintf("%T", &net.OpError{}))}},
	} {
		s := ended[i]
		name := want.method + " " + want.template
		if s.Name() != name || s.SpanKind() != trace.SpanKindClient || s.Parent().SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("span: got name %s, kind %v, parent %v; want name %s, kind %v, parent %v", s.Name(), s.SpanKind(), s.Parent().SpanID(), name, trace.SpanKindClient, parent.SpanContext().SpanID())
		}
		if got := s.Status(); got.Code != codes.Error || got.Description != "" {
			t.Errorf("%s: got status %+v, want an error without a description", name, got)
		}
		attrs := attribute.NewSet(slices.Concat(server, want.attrs, []attribute.KeyValue{attribute.String("http.request.method", want.method), attribute.String("url.template", want.template)})...)
		if got := attribute.NewSet(s.Attributes()...); !got.Equals(&attrs) {
			t.Errorf("%s: got attributes %v, want %v", name, got.ToSlice(), attrs.ToSlice())
		}
		if text := fmt.Sprint(s.Name(), s.Attributes(), s.Status(), s.Events()); strings.Contains(text, "hunter2") {
			t.Errorf("%s: got span %s, want no object name, query, token or path of the server in it", name, text)
		}
	}
	id := ended[0].SpanContext()
	if want := []string{"00-" + id.TraceID().String() + "-" + id.SpanID().String() + "-01"}; !slices.Equal(received, want) {
		t.Errorf("header traceparent at the server: got %q, want %q", received, want)
	}
}

// TestTracingTransport_NotSampled checks that a request of a trace that is not sampled creates no span,
// but passes the context of the trace to the server. The original request must not change.
func TestTracingTransport_NotSampled(t *testing.T) {
	var received string
	next := roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		received = r.Header.Get("traceparent")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	spans := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithSampler(sdk.NeverSample())).Tracer("test")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://api/api/v1/nodes", nil)
	response, err := (&tracingTransport{next: next, tracer: tracer}).RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("got response %v and error %v, want status 200", response, err)
	}
	response.Body.Close()
	if !strings.HasPrefix(received, "00-") || !strings.HasSuffix(received, "-00") {
		t.Errorf("header traceparent at the server: got %q, want one of a trace that is not sampled", received)
	}
	if got := r.Header.Get("traceparent"); got != "" {
		t.Errorf("header traceparent of the original request: got %q, want none", got)
	}
	if n := len(spans.Ended()); n != 0 {
		t.Errorf("got %d spans, want 0", n)
	}
}

// A roundTripperFunc implements http.RoundTripper.
type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestURLTemplate(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                                       "/api/v1/pods",
		"/api/v1/namespaces":                                 "/api/v1/namespaces",
		"/api/v1/namespaces/a":                               "/api/v1/namespaces/{name}",
		"/api/v1/namespaces/a/pods":                          "/api/v1/namespaces/{namespace}/pods",
		"/api/v1/namespaces/a/serviceaccounts/b/token":       "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
		"/apis/coordination.k8s.io/v1/namespaces/a/leases/b": "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}",
		"/apis/authentication.k8s.io/v1/tokenreviews":        "/apis/authentication.k8s.io/v1/tokenreviews",
		"/apis/storage.k8s.io/v1/volumeattachments/csi-1/":   "/apis/storage.k8s.io/v1/volumeattachments/{name}",
		"/apis/storage.k8s.io/v1":                            "",
		"/api/v1":                                            "",
		"/version":                                           "",
		"/":                                                  "",
		"/hunter2/api/v1/pods":                               "",
		"/api/v1/namespaces/a/pods/b/proxy/deeper/path/of/server": "",
	} {
		if got := urlTemplate(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
