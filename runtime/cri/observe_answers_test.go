package cri

import (
	"testing"

	"podd/runtime"
)

// TestAnswers: what was told is kept for two relists, and only of what runs, and only
// when somebody lists.
func TestAnswers(t *testing.T) {
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
			t.Errorf("%s: knows of the sandbox %v (%v), of the container %v, want %v", when, ready, s.Labels, runs, want)
		}
		_, not := a.sandbox("not")
		if _, ended := a.container("ended"); not || ended {
			t.Errorf("%s: knows of what does not run: %v, %v", when, not, ended)
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
