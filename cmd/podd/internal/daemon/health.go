package daemon

import (
	"fmt"
	"sync/atomic"
	"time"

	"podd/runtime/cri"
	"podd/server"
)

// The router calls heartbeat.beat at least every heartbeatInterval, even if nothing changes. The
// router counts as stuck if it has not called beat for stuckAfter. The runtime counts as stuck if
// it has not responded for stuckAfter.
const (
	heartbeatInterval = 10 * time.Second
	stuckAfter        = 2 * time.Minute
)

// A heartbeat records the time of the router's last iteration. It is safe for concurrent
// use.
type heartbeat struct {
	startTime time.Time // when podd started
	lastBeat  atomic.Pointer[time.Time]
}

// beat records an iteration of the router.
func (h *heartbeat) beat() {
	now := time.Now()
	h.lastBeat.Store(&now)
}

// checkBeat returns an error if the router is stuck. The router is stuck if the last beat was
// longer than stuckAfter ago. The start of podd counts as a beat.
func (h *heartbeat) checkBeat() error {
	last := h.lastBeat.Load()
	switch {
	case last == nil && time.Since(h.startTime) >= stuckAfter:
		return fmt.Errorf("the sync loop has not completed an iteration since podd started %s ago", roundedSince(h.startTime))
	case last != nil && time.Since(*last) >= stuckAfter:
		return fmt.Errorf("the sync loop completed its last iteration %s ago", roundedSince(*last))
	}
	return nil
}

// roundedSince returns the time since t in whole seconds.
func roundedSince(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }

// healthChecks returns the checks of /healthz.
func healthChecks(beats *heartbeat, pods *cri.Observer) []server.Check {
	return []server.Check{
		{Name: "syncloop", Func: beats.checkBeat},
		{Name: "runtime", Func: func() error { return checkRuntime(pods.Health(), beats.startTime) }},
	}
}

// checkRuntime returns an error if the last response of the runtime was longer than stuckAfter ago.
// The parameter began is the time at which podd started. The start counts as a response.
func checkRuntime(h cri.Health, began time.Time) error {
	switch {
	case h.Err == nil:
		return nil
	case h.LastRelist.IsZero() && time.Since(began) >= stuckAfter:
		return fmt.Errorf("the runtime has not responded since podd started %s ago: %w", roundedSince(began), h.Err)
	case !h.LastRelist.IsZero() && time.Since(h.LastRelist) >= stuckAfter:
		return fmt.Errorf("the runtime last responded %s ago: %w", roundedSince(h.LastRelist), h.Err)
	}
	return nil
}
