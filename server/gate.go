package server

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"podd/server/kube/request"
)

const (
	// gateSlotsPerCPU is the number of requests per processor that are served concurrently.
	// minGateSlots is the minimum number of requests for the whole endpoint. If more requests were
	// served concurrently, they would only delay each other.
	gateSlotsPerCPU = 4
	minGateSlots    = 8
	// gateWaitTimeout is the time for which a request waits for a slot.
	gateWaitTimeout = 50 * time.Millisecond
	// gateSlotTimeout is the maximum time for which a request occupies a slot. After this time the
	// slot is released although the request continues. Otherwise clients that read slowly would
	// block other clients.
	gateSlotTimeout = time.Second
)

// A gate limits the number of requests that are served concurrently.
type gate struct {
	handler http.Handler
	slots   chan struct{} // contains one element for each request that holds a slot
}

// LimitConcurrency returns a handler that limits the number of requests that h serves
// concurrently, so that each response is fast. Further requests wait briefly for a slot
// and are then rejected with 429. Long-running requests and health checks are not limited.
func LimitConcurrency(h http.Handler) http.Handler { return newGate(h) }

func newGate(h http.Handler) *gate {
	return &gate{handler: h, slots: make(chan struct{}, max(minGateSlots, gateSlotsPerCPU*runtime.GOMAXPROCS(0)))}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if request.IsLongRunning(r) || isHealthCheck(r.URL.Path) {
		g.handler.ServeHTTP(w, r)
		return
	}
	if !g.acquireSlot(r) {
		replyBusy(w, r)
		return
	}
	release := sync.OnceFunc(func() { <-g.slots })
	defer release()
	defer time.AfterFunc(gateSlotTimeout, release).Stop()
	g.handler.ServeHTTP(w, r)
}

// acquireSlot waits for a slot. It returns false if no slot became free within gateWaitTimeout or
// the client has disconnected.
func (g *gate) acquireSlot(r *http.Request) bool {
	select {
	case g.slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(gateWaitTimeout)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return true
	case <-timer.C:
	case <-r.Context().Done():
	}
	return false
}

// replyBusy rejects a request with 429.
func replyBusy(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	const message = "too many requests; retry after a second"
	if request.IsAPI(r.URL.Path) {
		ReplyStatus(w, &Error{Status: http.StatusTooManyRequests, Message: message})
		return
	}
	http.Error(w, message, http.StatusTooManyRequests)
}

func isHealthCheck(path string) bool {
	segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return segment == "healthz" || segment == "livez" || segment == "readyz"
}
