package daemon

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"podd/runtime/cri"
)

// TestHealthChecks_Stuck checks that the router counts as stuck if it has completed no iteration for
// stuckAfter, and the runtime if it has not responded for stuckAfter. The start of podd counts as the
// first iteration and response.
func TestHealthChecks_Stuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heartbeat{startTime: time.Now()}
		down := cri.Health{Err: errors.New("no socket")}
		check := func(name string, err error, want string) {
			t.Helper()
			if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("%s: got error %v, want one that starts with %q (\"\": no error)", name, err, want)
			}
		}
		check("router at the start", h.checkBeat(), "")
		check("runtime at the start", checkRuntime(down, h.startTime), "")
		began := time.Now()
		for time.Since(began) < stuckAfter {
			<-time.After(time.Second)
		}
		check("router without a beat", h.checkBeat(), "the sync loop has not completed an iteration since podd started 2m0s ago")
		check("runtime without a response", checkRuntime(down, h.startTime), "the runtime has not responded since podd started 2m0s ago: no socket")
		down.LastRelist = time.Now()
		h.beat()
		check("router after a beat", h.checkBeat(), "")
		check("runtime after a response", checkRuntime(down, h.startTime), "")
		<-time.After(stuckAfter)
		check("router that stopped", h.checkBeat(), "the sync loop completed its last iteration 2m0s ago")
		check("runtime that stopped", checkRuntime(down, h.startTime), "the runtime last responded 2m0s ago: no socket")
	})
}
