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
	// gateWidth is how many answers are made at once for each processor, and
	// gateLeast for all: more only make each other late.
	gateWidth = 4
	gateLeast = 8
	// gateWait is how long a request waits for its turn.
	gateWait = 50 * time.Millisecond
	// gateSlow is how long a request counts: who takes an answer slowly keeps
	// nobody else from theirs.
	gateSlow = time.Second
)

// Gate has so many requests answered at once that each is answered soon; others
// wait for a moment, and are then told to come again: 429. What may last, and
// what asks whether podd is well, is not counted.
type Gate struct {
	handler http.Handler
	slots   chan struct{} // holds one element for every request that counts
}

// NewGate is a gate before h.
func NewGate(h http.Handler) *Gate {
	return &Gate{handler: h, slots: make(chan struct{}, max(gateLeast, gateWidth*runtime.GOMAXPROCS(0)))}
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if request.Lasts(r) || asksHealth(r.URL.Path) {
		g.handler.ServeHTTP(w, r)
		return
	}
	if !g.enter(r) {
		busy(w, r)
		return
	}
	leave := sync.OnceFunc(func() { <-g.slots })
	defer leave()
	defer time.AfterFunc(gateSlow, leave).Stop()
	g.handler.ServeHTTP(w, r)
}

func (g *Gate) enter(r *http.Request) bool {
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

func busy(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	const message = "too many requests at once; ask again in a second"
	if request.Is(r.URL.Path) {
		ReplyStatus(w, &Error{Status: http.StatusTooManyRequests, Message: message})
		return
	}
	http.Error(w, message, http.StatusTooManyRequests)
}

func asksHealth(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "healthz" || first == "livez" || first == "readyz"
}
