package daemon

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"podd/runtime/cri"
)

// TestStuck checks that the time counts from podd's start before the first beat.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &heartbeat{began: time.Now()}
		down := cri.Health{Err: errors.New("no socket")}
		check := func(what string, err error, want string) {
			t.Helper()
			if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
		check("the loop at once", p.stuck(), "")
		check("the runtime at once", runtimeStuck(down, p.began), "")
		began := time.Now()
		for time.Since(began) < stuckAfter {
			<-time.After(time.Second)
		}
		check("a loop that never turned", p.stuck(), "the sync loop has not taken its first turn, 2m0s after")
		check("no runtime ever", runtimeStuck(down, p.began), "the runtime has not answered yet, 2m0s after podd's start: no socket")
		down.LastRelist = time.Now()
		p.beat()
		check("a loop that turns", p.stuck(), "")
		check("the runtime just now", runtimeStuck(down, p.began), "")
		<-time.After(stuckAfter)
		check("a loop that stopped", p.stuck(), "the sync loop took its last turn 2m0s ago")
		check("a runtime that went", runtimeStuck(down, p.began), "the runtime last answered 2m0s ago: no socket")
	})
}
