package daemon

import (
	"fmt"
	"sync/atomic"
	"time"

	"podd/runtime/cri"
	"podd/server"
)

// The router calls heartbeat.beat at least every heartbeatInterval, even if nothing changes. podd
// considers the router stuck if it has not called beat for stuckAfter, and the runtime if it has not
// responded for stuckAfter.
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

// checkBeat returns an error if the router is stuck, that is, if the last beat or else the start of
// podd was longer than stuckAfter ago.
func (h *heartbeat) checkBeat() error {
	lastBeat := h.lastBeat.Load()
	switch {
	case lastBeat == nil && time.Since(h.startTime) >= stuckAfter:
		return fmt.Errorf("the sync loop has not completed an iteration since podd started %s ago", roundedSince(h.startTime))
	case lastBeat != nil && time.Since(*lastBeat) >= stuckAfter:
		return fmt.Errorf("the sync loop completed its last iteration %s ago", roundedSince(*lastBeat))
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
// Before the first response, startTime, the start of podd, takes the place of the last response.
func checkRuntime(h cri.Health, startTime time.Time) error {
	switch {
	case h.Err == nil:
		return nil
	case h.LastRelist.IsZero() && time.Since(startTime) >= stuckAfter:
		return fmt.Errorf("the runtime has not responded since podd started %s ago: %w", roundedSince(startTime), h.Err)
	case !h.LastRelist.IsZero() && time.Since(h.LastRelist) >= stuckAfter:
		return fmt.Errorf("the runtime last responded %s ago: %w", roundedSince(h.LastRelist), h.Err)
	}
	return nil
}
