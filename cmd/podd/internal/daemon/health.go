package daemon

import (
	"fmt"
	"sync/atomic"
	"time"

	"podd/runtime/cri"
	"podd/server"
)

// The router publishes a heartbeat at least every heartbeatInterval, even if it has
// nothing to do. It is stuck if there is none for stuckAfter.
const (
	heartbeatInterval = 10 * time.Second
	stuckAfter        = 2 * time.Minute
)

// A heartbeat records the time of the router's last turn. It is safe for concurrent use.
type heartbeat struct {
	began time.Time // when podd started
	last  atomic.Pointer[time.Time]
}

func (p *heartbeat) beat() {
	now := time.Now()
	p.last.Store(&now)
}

// stuck returns an error if the last beat, or podd's start if there was none, is too long
// ago.
func (p *heartbeat) stuck() error {
	last := p.last.Load()
	switch {
	case last == nil && time.Since(p.began) >= stuckAfter:
		return fmt.Errorf("the sync loop has not taken its first turn, %s after podd's start", roundedSince(p.began))
	case last != nil && time.Since(*last) >= stuckAfter:
		return fmt.Errorf("the sync loop took its last turn %s ago", roundedSince(*last))
	}
	return nil
}

func roundedSince(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }

// healthChecks returns the checks of /healthz.
func healthChecks(beats *heartbeat, pods *cri.Observer) []server.Check {
	return []server.Check{
		{Name: "syncloop", Func: beats.stuck},
		{Name: "runtime", Func: func() error { return runtimeStuck(pods.Health(), beats.began) }},
	}
}

// runtimeStuck returns an error if the runtime has not responded for stuckAfter, or since
// podd's start.
func runtimeStuck(h cri.Health, began time.Time) error {
	switch {
	case h.Err == nil:
		return nil
	case h.LastRelist.IsZero() && time.Since(began) >= stuckAfter:
		return fmt.Errorf("the runtime has not answered yet, %s after podd's start: %w", roundedSince(began), h.Err)
	case !h.LastRelist.IsZero() && time.Since(h.LastRelist) >= stuckAfter:
		return fmt.Errorf("the runtime last answered %s ago: %w", roundedSince(h.LastRelist), h.Err)
	}
	return nil
}
