package httptrace

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// newMux returns the handler of the tests. /panic aborts the response.
func newMux() http.Handler {
	inner := http.NewServeMux()
	inner.HandleFunc("GET /exec/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		if !trace.SpanFromContext(r.Context()).SpanContext().IsValid() {
			http.Error(w, "no span in the context", http.StatusTeapot)
		}
		io.WriteString(w, "out")
	})
	inner.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	inner.HandleFunc("/fail", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) })
	inner.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	})
	mux := http.NewServeMux()
	mux.Handle("/", inner)
	return mux
}

func TestHandler(t *testing.T) {
	for _, c := range []struct {
		method, target string
		name           string
		attrs          []attribute.KeyValue
		status         codes.Code
	}{
		{"GET", "/exec/web/main?command=cat&command=hunter2", "GET /exec/{pod}/{container}", []attribute.KeyValue{
			attribute.String("http.request.method", "GET"), attribute.String("http.route", "/exec/{pod}/{container}"), attribute.Int("http.response.status_code", 200)}, codes.Unset},
		{"GET", "/hunter2", "GET", []attribute.KeyValue{
			attribute.String("http.request.method", "GET"), attribute.Int("http.response.status_code", 404)}, codes.Unset},
		{"HUNTER2", "/fail", "_OTHER /fail", []attribute.KeyValue{
			attribute.String("http.request.method", "_OTHER"), attribute.String("http.route", "/fail"), attribute.Int("http.response.status_code", 503)}, codes.Error},
		{"GET", "/panic", "GET /panic", []attribute.KeyValue{
			attribute.String("http.request.method", "GET"), attribute.String("http.route", "/panic")}, codes.Unset},
		{"GET", "/stream", "GET /stream", []attribute.KeyValue{
			attribute.String("http.request.method", "GET"), attribute.String("http.route", "/stream"), attribute.Int("http.response.status_code", 101)}, codes.Unset},
	} {
		spans := tracetest.NewSpanRecorder()
		h := Handler(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test"), newMux())
		returned := make(chan struct{})
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(returned)
			h.ServeHTTP(w, r)
		}))
		send(t, ts, c.method, c.target)
		<-returned // the server does not wait for a handler that took over the connection
		ts.Close()
		ended := spans.Ended()
		if len(ended) != 1 {
			t.Fatalf("%s: got %d spans, want 1", c.target, len(ended))
		}
		s := ended[0]
		want, got := attribute.NewSet(c.attrs...), attribute.NewSet(s.Attributes()...)
		if s.Name() != c.name || s.SpanKind() != trace.SpanKindServer || s.Status().Code != c.status || !got.Equals(&want) {
			t.Errorf("%s: got span %s, status %v, attributes %v; want span %s, status %v, attributes %v", c.target, s.Name(), s.Status().Code, got.ToSlice(), c.name, c.status, want.ToSlice())
		}
		const parent = "0102030405060708090a0b0c0d0e0f10"
		if !s.Parent().IsRemote() || s.SpanContext().TraceID().String() != parent {
			t.Errorf("%s: got trace ID %s, want the trace ID of the client", c.target, s.SpanContext().TraceID())
		}
	}
}

// send sends a request that belongs to a trace, and reads the response or the end of the connection.
func send(t *testing.T, ts *httptest.Server, method, target string) {
	t.Helper()
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: n1\r\nConnection: close\r\ntraceparent: 00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01\r\n\r\n", method, target)
	_, _ = io.Copy(io.Discard, bufio.NewReader(conn)) // an aborted connection is an error
}

// TestHandler_NotRecorded checks that requests are served without a recorded span, and without a
// tracer.
func TestHandler_NotRecorded(t *testing.T) {
	never := sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample())).Tracer("test")
	for name, h := range map[string]http.Handler{"not sampled": Handler(never, newMux()), "disabled": Handler(nil, newMux())} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/exec/web/main", nil))
		if want := name == "not sampled"; (w.Code == 200) != want || !strings.HasSuffix(w.Body.String(), "out") {
			t.Errorf("%s: got %d %s, want the output of the handler, with status 200 only if the request has a span", name, w.Code, w.Body)
		}
	}
}
