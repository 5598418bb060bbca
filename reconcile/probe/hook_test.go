package probe

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

func hook(path string, scheme v1.URIScheme) *v1.LifecycleHandler {
	h := get(path).HTTPGet
	h.Scheme = scheme
	h.HTTPHeaders = []v1.HTTPHeader{{Name: "Authorization", Value: "secret"}, {Name: "X-A", Value: "1"}}
	return &v1.LifecycleHandler{HTTPGet: h}
}

// TestCall checks that every response is a success and that podd sends the same request as the
// kubelet.
func TestCall(t *testing.T) {
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	to := newTarget(t, s.Listener.Addr())
	to.Timeout = 0
	if plain, err := CallHTTPHook(t.Context(), hook("/stop?now", v1.URISchemeHTTP), to); err != nil || plain != "" {
		t.Errorf("got plain host %q, error %v; want none", plain, err)
	}
	if got.RequestURI != "/stop?now" || got.UserAgent() != "kube-lifecycle/"+manifest.KubernetesRelease() || got.Header.Get("Authorization") != "secret" || got.Header.Get("X-A") != "1" {
		t.Errorf("request: got %s with %v; want /stop?now with the kubelet's user agent, Authorization and X-A", got.RequestURI, got.Header)
	}
	// A server without TLS gets a plain HTTP request without credentials.
	if plain, err := CallHTTPHook(t.Context(), hook("/stop", v1.URISchemeHTTPS), to); err != nil || plain != s.Listener.Addr().String() {
		t.Errorf("got plain host %q, error %v; want %s and no error", plain, err, s.Listener.Addr())
	}
	if got.RequestURI != "/stop" || got.Header.Get("Authorization") != "" || got.Header.Get("X-A") != "1" {
		t.Errorf("request: got %s with %v; want /stop with X-A and without Authorization", got.RequestURI, got.Header)
	}
}

func TestCall_Errors(t *testing.T) {
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	defer s.Close()
	defer close(done)
	to := newTarget(t, s.Listener.Addr())
	to.Timeout = time.Second // long enough to connect
	_, err := CallHTTPHook(t.Context(), hook("/?token=secret", v1.URISchemeHTTP), to)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("slow server: got error %v, want an exceeded deadline without the query", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	to.Timeout = 0
	if _, err := CallHTTPHook(ctx, hook("/", v1.URISchemeHTTP), to); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled call: got error %v, want %v", err, context.Canceled)
	}
	to.Ports = nil
	if _, err := CallHTTPHook(t.Context(), hook("/", v1.URISchemeHTTP), to); err == nil || !strings.Contains(err.Error(), `no port "web"`) {
		t.Errorf("unknown port: got error %v, want one with 'no port \"web\"'", err)
	}
	if _, err := CallHTTPHook(t.Context(), &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{}}, to); err == nil {
		t.Error("unsupported handler: got no error, want one")
	}
}
