package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// newRequest returns a server request like those of net/http, with a canceled
// context, so that no handler blocks. It returns nil if net/http rejects the
// request.
func newRequest(t *testing.T, method, target, host, body string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil
	}
	r, err := http.NewRequest(method, "http://n1", strings.NewReader(body))
	if err != nil {
		return nil
	}
	r.URL, r.Host = u, host
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return r.WithContext(ctx)
}

// FuzzReadOnly checks that every response has a valid status and contains no value of an environment
// variable, and that only requests whose Host is a name or an address of this node are served.
func FuzzReadOnly(f *testing.F) {
	for _, target := range []string{"/pods", "/pods/?x=1", "//pods", "/healthz/ping", "/page/../pods", "/stats/summary", "/%2e%2e/etc/passwd", "/metrics/cadvisor"} {
		f.Add("GET", target, "localhost", "")
		f.Add("POST", target, "evil.example", "x")
	}
	secret := pod("web-n1")
	secret.Pod.Spec.Containers = []v1.Container{{Name: "c", Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}}}
	h := readOnly(secret)
	f.Fuzz(func(t *testing.T, method, target, host, body string) {
		r := newRequest(t, method, target, host, body)
		if r == nil {
			return
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s %q with Host %q: got %d %s, want a valid status and no value of a variable", method, target, host, w.Code, w.Body)
		}
		if w.Code == http.StatusOK && !isKnownHost(r, h.Node) {
			t.Errorf("%s %q with Host %q, which is not this node, was served", method, target, host)
		}
	})
}

// FuzzAPI checks that every response has a valid status, and that names that could traverse
// directories are rejected.
func FuzzAPI(f *testing.F) {
	for _, target := range []string{
		"/v1/version", "/v1/state?watch=1&revision=7", "/v1/events?revision=1", "/v1/events?watch=1", "/v1/credential",
		"/v1/logs?namespace=default&pod=web-n1&container=c&tail=-1&since=2026-01-02T15:04:05Z&limit=9", "/v1/logs?namespace=..&pod=..&container=..",
	} {
		f.Add("GET", target, "")
	}
	f.Add("POST", "/v1/restart", `{"namespace":"default","pod":"web-n1","container":"c"}`)
	f.Add("POST", "/v1/down", "")
	f.Fuzz(func(t *testing.T, method, target, body string) {
		r := newRequest(t, method, target, "podd", body)
		if r == nil {
			return
		}
		m := newFakeDaemon("web-n1")
		m.down = func(context.Context) error { return errors.New("no") }
		m.log = func(_ context.Context, req LogRequest, _ io.Writer) error {
			for _, name := range []string{req.Pod.Namespace, req.Pod.Name, req.Container} {
				if name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, "/") {
					t.Errorf("%s %q: got name %q, want one that is safe in a path", method, target, name)
				}
			}
			return nil
		}
		a := &API{State: m, Command: m, Logs: m, Events: m.events, IssueCredential: func(time.Duration) (Credential, error) { return Credential{}, nil }, RevokeCredentials: func() (Revocation, error) { return Revocation{}, nil }}
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("%s %q: got status %d, want 200 to 599", method, target, w.Code)
		}
		for _, pod := range m.restarted {
			if strings.Contains(pod, "..") || strings.Count(pod, "/") != 1 {
				t.Errorf("%s %q with body %q: got a restart of pod %q, want only safe names", method, target, body, pod)
			}
		}
	})
}
