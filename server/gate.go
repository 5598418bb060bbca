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
	// gatePerCPU is the number of requests per processor that are served concurrently. gateMin is
	// the minimum for the whole endpoint. More concurrent requests would only delay each other.
	gatePerCPU = 4
	gateMin    = 8
	// gateWait is the time for which a request waits for a slot.
	gateWait = 50 * time.Millisecond
	// gateSlow is the time after which a request gives up its slot, so that clients
	// that read slowly do not block others.
	gateSlow = time.Second
)

// gate limits the number of requests that are served concurrently.
type gate struct {
	handler http.Handler
	slots   chan struct{} // holds one element for each request in progress
}

// LimitConcurrency returns a handler that limits the number of requests that h serves
// concurrently, so that each response is fast. Further requests wait briefly for a slot
// and are then rejected with 429. Long-running requests and health checks are not limited.
func LimitConcurrency(h http.Handler) http.Handler { return newGate(h) }

func newGate(h http.Handler) *gate {
	return &gate{handler: h, slots: make(chan struct{}, max(gateMin, gatePerCPU*runtime.GOMAXPROCS(0)))}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if request.IsLongRunning(r) || isHealthCheck(r.URL.Path) {
		g.handler.ServeHTTP(w, r)
		return
	}
	if !g.enter(r) {
		busy(w, r)
		return
	}
	release := sync.OnceFunc(func() { <-g.slots })
	defer release()
	defer time.AfterFunc(gateSlow, release).Stop()
	g.handler.ServeHTTP(w, r)
}

// enter waits for a slot. It returns false if no slot became free within gateWait or the
// client has disconnected.
func (g *gate) enter(r *http.Request) bool {
	select {
	case g.slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(gateWait)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return true
	case <-timer.C:
	case <-r.Context().Done():
	}
	return false
}

// busy rejects a request with 429.
func busy(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	const message = "too many requests; retry after a second"
	if request.IsAPI(r.URL.Path) {
		ReplyStatus(w, &Error{Status: http.StatusTooManyRequests, Message: message})
		return
	}
	http.Error(w, message, http.StatusTooManyRequests)
}

func isHealthCheck(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "healthz" || first == "livez" || first == "readyz"
}
