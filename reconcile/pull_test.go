package reconcile_test

import (
	"testing"
	"time"

	"podd/runtime/runtimetest"
)

// TestPulls checks that a pull is in the report from its beginning to its end, and that an image
// that is already on the node is not.
func TestPulls(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "far:1"}, PullDuration: time.Minute})
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "far:1"}, {name: side, image: "web:1"}]`))
		begun := time.Now()
		m.advance(10 * time.Second)
		if got := m.report("web").Pulls; len(got) != 1 || got[0].Container != "app" || got[0].Image != "far:1" || got[0].Since.Sub(begun) > time.Second {
			t.Errorf("pulls: got %+v, want one of far:1 since %s", got, begun)
		}
		m.advance(2 * time.Minute)
		if got := m.report("web"); len(got.Pulls) != 0 {
			t.Errorf("pulls after the image is on the node: got %+v, want none", got.Pulls)
		}
	})
}
