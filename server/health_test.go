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
	well := &Health{
		Checks: []Check{{"syncloop", ok}, {"runtime", ok}},
		Ready:  []Check{{"sources", func() error { return errors.New("https://fleet.example/x not read yet") }}},
	}
	ill := &Health{Checks: []Check{
		{"syncloop", func() error { return errors.New("no turn for 5m10s,\nlonger than 5m0s") }},
		{"runtime", func() error { return errors.New("no answer for 40s") }},
	}}
	tests := []struct {
		health       *Health
		method, path string
		status       int
		body         string
	}{
		{well, "GET", "/healthz", 200, "ok"},
		{well, "HEAD", "/healthz", 200, "ok"}, // net/http drops the body
		{well, "GET", "/healthz/", 200, "ok"},
		{well, "GET", "/livez", 200, "ok"},
		{well, "GET", "/healthz/syncloop", 200, "ok"},
		{well, "GET", "/readyz", 500, "sources: https://fleet.example/x not read yet\n"},
		{well, "GET", "/healthz/nothing", 404, "404 page not found\n"},
		{well, "GET", "/syncloop", 404, "404 page not found\n"},
		{well, "GET", "/", 404, "404 page not found\n"},
		{well, "POST", "/healthz", 405, "only GET and HEAD are served here\n"},
		{ill, "GET", "/healthz", 500, "syncloop: no turn for 5m10s, longer than 5m0s; runtime: no answer for 40s\n"},
		{ill, "GET", "/healthz/runtime", 500, "runtime: no answer for 40s\n"},
		{ill, "GET", "/healthz/ping", 200, "ok"},
		{ill, "GET", "/healthz/log", 200, "ok"},
		{&Health{}, "GET", "/healthz", 200, "ok"},
	}
	for _, tt := range tests {
		got := ask(tt.health, tt.method, tt.path, "anything")
		if got.Code != tt.status || got.Body.String() != tt.body {
			t.Errorf("%s %s: %d %q, want %d %q", tt.method, tt.path, got.Code, got.Body, tt.status, tt.body)
		}
		if tt.status == http.StatusMethodNotAllowed && got.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: Allow is %q", tt.method, tt.path, got.Header().Get("Allow"))
		}
	}
}

// TestChecked: who counts checks is told of each.
func TestChecked(t *testing.T) {
	var told []string
	h := &Health{Checks: []Check{
		{"syncloop", func() error { return nil }},
		{"runtime", func() error { return errors.New("no answer") }},
	}}
	h.Observed = func(kind, name string, err error) { told = append(told, fmt.Sprint(kind, " ", name, " ", err)) }
	for _, path := range []string{"/healthz", "/healthz/runtime", "/healthz/ping"} {
		ask(h, "GET", path, "")
	}
	if got, want := strings.Join(told, ", "), "healthz syncloop <nil>, healthz runtime no answer, healthz runtime no answer"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}
