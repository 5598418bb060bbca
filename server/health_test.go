package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	ok := func() error { return nil }
	healthy := &Health{Checks: []Check{{"syncloop", ok}, {"runtime", ok}}}
	unhealthy := &Health{Checks: []Check{
		{"syncloop", func() error { return errors.New("no progress for 5m10s,\nlonger than 5m0s") }},
		{"runtime", func() error { return errors.New("no response for 40s") }},
	}}
	tests := []struct {
		health       *Health
		method, path string
		status       int
		body         string
	}{
		{healthy, "GET", "/healthz", 200, "ok"},
		{healthy, "HEAD", "/healthz", 200, "ok"}, // net/http omits the body
		{healthy, "GET", "/healthz/", 200, "ok"},
		{healthy, "GET", "/livez", 200, "ok"},
		{healthy, "GET", "/healthz/syncloop", 200, "ok"},
		{healthy, "GET", "/readyz", 200, "ok"},
		{healthy, "GET", "/healthz/nothing", 404, "404 page not found\n"},
		{healthy, "GET", "/syncloop", 404, "404 page not found\n"},
		{healthy, "GET", "/", 404, "404 page not found\n"},
		{healthy, "POST", "/healthz", 405, "only the methods GET and HEAD are allowed\n"},
		{unhealthy, "GET", "/healthz", 500, "syncloop: no progress for 5m10s, longer than 5m0s; runtime: no response for 40s\n"},
		{unhealthy, "GET", "/readyz", 500, "syncloop: no progress for 5m10s, longer than 5m0s; runtime: no response for 40s\n"},
		{unhealthy, "GET", "/healthz/runtime", 500, "runtime: no response for 40s\n"},
		{unhealthy, "GET", "/healthz/ping", 200, "ok"},
		{unhealthy, "GET", "/healthz/log", 200, "ok"},
		{&Health{}, "GET", "/healthz", 200, "ok"},
		{healthy, "GET", "/healthz?verbose", 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\n[+]runtime ok\nhealthz check passed\n"},
		{healthy, "GET", "/readyz?verbose=1&exclude=runtime&exclude=ping", 200, "[+]ping excluded: ok\n[+]log ok\n[+]syncloop ok\n[+]runtime excluded: ok\nreadyz check passed\n"},
		{unhealthy, "GET", "/livez?verbose", 500, "[+]ping ok\n[+]log ok\n[-]syncloop failed: no progress for 5m10s, longer than 5m0s\n[-]runtime failed: no response for 40s\nlivez check failed\n"},
		{unhealthy, "GET", "/healthz?exclude=syncloop&exclude=runtime", 200, "ok"},
		{unhealthy, "GET", "/healthz?exclude=runtime&exclude=etcd", 500, "syncloop: no progress for 5m10s, longer than 5m0s\n"},
		{healthy, "GET", "/healthz?verbose&exclude=etcd", 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\n[+]runtime ok\nwarn: some health checks cannot be excluded: no matches for \"etcd\"\nhealthz check passed\n"},
		{healthy, "GET", "/healthz/syncloop?verbose", 200, "ok"},
	}
	for _, tt := range tests {
		got := sendTo(tt.health, tt.method, tt.path, "anything")
		if got.Code != tt.status || got.Body.String() != tt.body {
			t.Errorf("%s %s: got %d %q, want %d %q", tt.method, tt.path, got.Code, got.Body, tt.status, tt.body)
		}
		if tt.status == http.StatusMethodNotAllowed && got.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: got Allow %q, want GET, HEAD", tt.method, tt.path, got.Header().Get("Allow"))
		}
	}
}

// TestHealth_Observed checks that Health calls OnCheck for each of its checks.
func TestHealth_Observed(t *testing.T) {
	var observed []string
	h := &Health{Checks: []Check{
		{"syncloop", func() error { return nil }},
		{"runtime", func() error { return errors.New("no response") }},
	}}
	h.OnCheck = func(kind, name string, err error) { observed = append(observed, fmt.Sprint(kind, " ", name, " ", err)) }
	for _, path := range []string{"/healthz", "/healthz/runtime", "/healthz/ping"} {
		sendTo(h, "GET", path, "")
	}
	if got, want := strings.Join(observed, ", "), "healthz syncloop <nil>, healthz runtime no response, healthz runtime no response"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
