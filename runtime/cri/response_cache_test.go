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
	has := func(when string, want bool) {
		t.Helper()
		s, ready := a.sandbox("ready")
		_, runs := a.container("runs")
		if ready != want || runs != want || s.Labels != nil {
			t.Errorf("%s: stored the sandbox: %v (labels %v), the container: %v; want %v without labels", when, ready, s.Labels, runs, want)
		}
		_, notReady := a.sandbox("not")
		if _, ended := a.container("ended"); notReady || ended {
			t.Errorf("%s: got stored responses of a sandbox that is not ready: %v, of an exited container: %v; want none", when, notReady, ended)
		}
	}
	store()
	has("without an Observer", false)
	a.beginRelist()
	store()
	has("stored after a relist", true)
	a.beginRelist()
	has("after the next relist", true)
	a.beginRelist()
	has("after the second relist", false)
}
