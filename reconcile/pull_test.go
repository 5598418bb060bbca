package reconcile_test

import (
	"testing"
	"time"

	"podd/runtime/runtimetest"
)

// TestPulls: what is being fetched is told from its beginning to its end, and of
// what is there nothing.
func TestPulls(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.AddRemote(runtimetest.Remote{Image: runtimetest.Image{Name: "far:1"}, Takes: time.Minute})
		m.start()
		m.want(pod(t, "web", `containers: [{name: app, image: "far:1"}, {name: side, image: "web:1"}]`))
		begun := time.Now()
		m.pass(10 * time.Second)
		if got := m.report("web").Pulls; len(got) != 1 || got[0].Container != "app" || got[0].Image != "far:1" || got[0].Since.Sub(begun) > time.Second {
			t.Errorf("pulls %+v since %s", got, begun)
		}
		m.pass(2 * time.Minute)
		if got := m.report("web"); len(got.Pulls) != 0 {
			t.Errorf("still pulls %+v", got.Pulls)
		}
	})
}
