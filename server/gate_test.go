package server

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestGate checks that requests up to the limit are served at once, and that further requests wait
// or are rejected. The limit does not include long-running requests, and includes a slow request
// only for a limited time.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		g := newGate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-end
			}
		}))
		get := func(path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w
		}
		var slow sync.WaitGroup
		for range cap(g.slots) {
			slow.Go(func() { get("/slow") })
		}
		synctest.Wait()
		for path, want := range map[string]int{
			"/pods":                     429,
			"/api/v1/pods":              429,
			"/metrics":                  429,
			"/healthz":                  200,
			"/livez/x":                  200,
			"/containerLogs/a/b/c":      429,
			"/api/v1/pods?follow=1":     429,
			"/api/v1/pods?watch=1":      200,
			"/exec/default/web-n1/app":  200,
			"/api/v1/namespaces/a/pods": 429,
		} {
			w := get(path)
			if w.Code != want || (w.Header().Get("Retry-After") != "") != (want == 429) {
				t.Errorf("%s: got %d with header %v, want %d", path, w.Code, w.Header(), want)
			}
		}
		<-time.After(gateSlotTimeout)
		if w := get("/pods"); w.Code != 200 {
			t.Errorf("with slow requests in progress: got %d, want 200", w.Code)
		}
		close(end)
		slow.Wait()
		if n := len(g.slots); n != 0 {
			t.Errorf("got %d slots in use, want 0", n)
		}
	})
}
