package cri

import (
	"testing"

	"podd/runtime"
)

// TestResponseCache checks that responses are stored until the second relist. Only responses for
// ready sandboxes and running containers are stored, and only after beginRelist was called.
func TestResponseCache(t *testing.T) {
	var a responseCache
	store := func() {
		a.storeSandbox(runtime.Sandbox{ID: "ready", Ready: true, Labels: map[string]string{"a": "b"}})
		a.storeSandbox(runtime.Sandbox{ID: "not"})
		a.storeContainer(runtime.Container{ID: "runs", State: runtime.Running})
		a.storeContainer(runtime.Container{ID: "ended", State: runtime.Exited})
	}
	check := func(when string, want bool) {
		t.Helper()
		s, ready := a.sandbox("ready")
		_, runs := a.container("runs")
		if ready != want || runs != want || s.Labels != nil {
			t.Errorf("%s: got responses stored for the ready sandbox: %t (labels %v), for the running container: %t; want %t for both and no labels", when, ready, s.Labels, runs, want)
		}
		_, notReady := a.sandbox("not")
		if _, ended := a.container("ended"); notReady || ended {
			t.Errorf("%s: got responses stored for the sandbox that is not ready: %t, for the exited container: %t; want false for both", when, notReady, ended)
		}
	}
	store()
	check("before the first relist", false)
	a.beginRelist()
	store()
	check("stored after a relist", true)
	a.beginRelist()
	check("after the next relist", true)
	a.beginRelist()
	check("after the second relist", false)
}
