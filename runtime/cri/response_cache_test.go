package cri

import (
	"testing"

	"podd/runtime"
)

// TestResponseCache checks that responses are stored until the second relist, only about
// ready sandboxes and running containers, and only if an Observer lists.
func TestResponseCache(t *testing.T) {
	var a responseCache
	tell := func() {
		a.keepSandbox(runtime.Sandbox{ID: "ready", Ready: true, Labels: map[string]string{"a": "b"}})
		a.keepSandbox(runtime.Sandbox{ID: "not"})
		a.keepContainer(runtime.Container{ID: "runs", State: runtime.Running})
		a.keepContainer(runtime.Container{ID: "ended", State: runtime.Exited})
	}
	knows := func(when string, want bool) {
		t.Helper()
		s, ready := a.sandbox("ready")
		_, runs := a.container("runs")
		if ready != want || runs != want || s.Labels != nil {
			t.Errorf("%s: has the sandbox %v (labels %v), the container %v, want %v", when, ready, s.Labels, runs, want)
		}
		_, not := a.sandbox("not")
		if _, ended := a.container("ended"); not || ended {
			t.Errorf("%s: has objects that do not run: %v, %v", when, not, ended)
		}
	}
	tell()
	knows("nobody lists", false)
	a.relist()
	tell()
	knows("told since a relist", true)
	a.relist()
	knows("and listed", true)
	a.relist()
	knows("and listed again", false)
}
