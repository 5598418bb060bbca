package daemon

import (
	"testing"

	"podd/server"
)

// TestCountRunning checks that pods without a sandbox are not counted.
func TestCountRunning(t *testing.T) {
	v := &server.View{Pods: []*server.PodView{{SandboxID: "a", Exists: true}, {Exists: true}, {}, {SandboxID: "b"}}}
	if n := countRunning(v); n != 2 {
		t.Errorf("got %d, want 2", n)
	}
}
