package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podd/manifest"
	"podd/manifest/wording"
)

// newTarget returns a container whose port "web" is that of the listener at addr.
func newTarget(t *testing.T, addr net.Addr) Target {
	t.Helper()
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return Target{IP: host, Ports: []v1.ContainerPort{{Name: "other", ContainerPort: 1}, {Name: "web", ContainerPort: int32(n)}}, Timeout: 5 * time.Minute}
}

func get(path string) *v1.ProbeHandler {
	return &v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: intstr.FromString("web"), Scheme: v1.URISchemeHTTP}}
}

// checkAttempt runs an attempt and checks its result. The parameter want is a prefix of the
// message.
func checkAttempt(t *testing.T, h *v1.ProbeHandler, to Target, passed bool, want string) {
	t.Helper()
	r, err := Attempt(t.Context(), h, to)
	if err != nil || r.Passed != passed || !strings.HasPrefix(r.Message, want) || want == "" && r.Message != "" {
		t.Errorf("got passed %v, %q, error %v; want passed %v, %q", r.Passed, r.Message, err, passed, want)
	}
}

func TestHTTPStatus(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.WriteHeader(code)
		w.Write([]byte("secret"))
	}))
	defer s.Close()
	to := newTarget(t, s.Listener.Addr())
	for code, passed := range map[string]bool{"200": true, "204": true, "304": true, "399": true, "400": false, "404": false, "500": false, "599": false} {
		want := ""
		if !passed {
			want = "HTTP probe failed with statuscode: " + code
		} else if code[0] == '3' {
			want = "Probe terminated redirects, Response body:"
		}
		checkAttempt(t, get("/"+code), to, passed, want)
	}
}

// TestHTTPRequest checks that podd sends the same request as the kubelet.
func TestHTTPRequest(t *testing.T) {
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	defer s.Close()
	to := newTarget(t, s.Listener.Addr())
	checkAttempt(t, get("/a?b=c"), to, true, "")
	if got.Method != "GET" || got.RequestURI != "/a?b=c" || got.UserAgent() != "kube-probe/"+manifest.KubernetesRelease() || got.Header.Get("Accept") != "*/*" ||
		got.Header.Get("Accept-Encoding") != "" || got.Host != s.Listener.Addr().String() || !got.Close {
		t.Errorf("request: got %s %s to host %q with header %v; want the kubelet's request", got.Method, got.RequestURI, got.Host, got.Header)
	}
	h := get("no/slash")
	h.HTTPGet.HTTPHeaders = []v1.HTTPHeader{{Name: "host", Value: "example.com"}, {Name: "user-agent", Value: "me"}, {Name: "Accept", Value: ""}, {Name: "X-A", Value: "1"}, {Name: "X-A", Value: "2"}}
	checkAttempt(t, h, to, true, "")
	if got.URL.Path != "/no/slash" || got.Host != "example.com" || got.UserAgent() != "me" || len(got.Header["X-A"]) != 2 || got.Header["Accept"] != nil {
		t.Errorf("request: got %s to %q with %v; want /no/slash to example.com with the given headers", got.RequestURI, got.Host, got.Header)
	}
}

func TestHTTPRedirect(t *testing.T) {
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/bad", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop?token=secret", http.StatusFound)
		case "/bad":
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer s.Close()
	to := newTarget(t, s.Listener.Addr())
	checkAttempt(t, get("/here"), to, false, "HTTP probe failed with statuscode: 418")
	r, err := Attempt(t.Context(), get("/away"), to)
	// This is the kubelet's text, which Kubernetes' tests expect.
	const want = `Probe terminated redirects, Response body: <a href="http://other.invalid/">Found</a>.`
	if err != nil || !r.Passed || !r.IsWarning || r.Message != want {
		t.Errorf("a redirect to another host: got %+v (error %v); want a warning %q", r, err, want)
	}
	requests = 0
	r, _ = Attempt(t.Context(), get("/loop"), to)
	if r.Passed || requests != 10 || !strings.Contains(r.Message, "stopped after 10 redirects") || strings.Contains(r.Message, "secret") {
		t.Errorf("got %+v after %d requests; want a failure after 10 without the query", r, requests)
	}
}

// TestHTTPBody checks that only the beginning of a body is read, and that an incomplete
// body is an error.
func TestHTTPBody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("short"))
			return
		}
		for {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	to := newTarget(t, s.Listener.Addr())
	checkAttempt(t, get("/"), to, true, "")
	if r, err := Attempt(t.Context(), get("/broken"), to); err == nil {
		t.Errorf("incomplete body: got %+v, want an error", r)
	}
}

func TestHTTPTimeout(t *testing.T) {
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	defer s.Close()
	defer close(done)
	to := newTarget(t, s.Listener.Addr())
	to.Timeout = time.Second // long enough to connect
	checkAttempt(t, get("/?token=secret"), to, false, `Get "http://`+s.Listener.Addr().String()+`/": context deadline exceeded`)
}

// TestHTTPS checks that the certificate is not verified.
func TestHTTPS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	h := get("/")
	checkAttempt(t, h, newTarget(t, s.Listener.Addr()), false, "HTTP probe failed with statuscode: 400")
	h.HTTPGet.Scheme = v1.URISchemeHTTPS
	checkAttempt(t, h, newTarget(t, s.Listener.Addr()), true, "")
}

// TestAttempt_Canceled checks that a canceled attempt has no result.
func TestAttempt_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer s.Close()
	if r, err := Attempt(ctx, get("/"), newTarget(t, s.Listener.Addr())); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled attempt: got %+v with error %v; want error %v", r, err, context.Canceled)
	}
}

func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := newTarget(t, l.Addr())
	h := &v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("web")}}
	checkAttempt(t, h, to, true, "")
	h.TCPSocket.Host, to.IP = "localhost", "192.0.2.1"
	checkAttempt(t, h, to, true, "")
	l.Close()
	checkAttempt(t, h, to, false, "dial tcp")
}

// TestAttempt_Errors checks that a probe that cannot be carried out is an error and not a
// failure of the container.
func TestAttempt_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		h  v1.ProbeHandler
		to Target
	}{
		"no handler":   {v1.ProbeHandler{}, Target{IP: "192.0.2.1"}},
		"no address":   {v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(1)}}, Target{}},
		"unknown port": {v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("web")}}, Target{IP: "192.0.2.1"}},
		"port 0":       {v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromString("0")}}, Target{IP: "192.0.2.1"}},
		"invalid host": {v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(1), Host: "a b"}}, Target{}},
	} {
		if r, err := Attempt(t.Context(), &c.h, c.to); err == nil {
			t.Errorf("%s: got %+v, want an error", name, r)
		}
	}
	if got, err := (Target{}).port(intstr.FromString("8080")); err != nil || got != "8080" {
		t.Errorf("quoted port: got %q (error %v), want 8080", got, err)
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"\n \r\n\tdown: disk full\nmore":     "down: disk full",
		"\x1b[31mred\x1b[0m\x00\u202e\u200b": "[31mred[0m",
		"\xff\xfeodd":                        "\ufffd\ufffdodd",
		strings.Repeat("ä", 300):             strings.Repeat("ä", 200) + "…",
	} {
		if got := wording.FirstLine(text); got != want {
			t.Errorf("wording.FirstLine(%q) = %q, want %q", text, got, want)
		}
	}
}
