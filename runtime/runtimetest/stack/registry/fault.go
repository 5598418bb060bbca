package registry

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// A Fault makes requests fail or hang.
type Fault struct {
	// PathPart is a part of a path, such as "/manifests/", "/blobs/" or "/team/web/". The fault
	// applies only to requests with a path that contains PathPart. "" selects all requests.
	PathPart string
	// Status is the status code of the response, such as 429 or 503. If Status is zero, the request
	// hangs: the registry sends no response until the client cancels the request or the registry is
	// closed.
	Status int
	// Times is the number of requests to which the fault applies. Zero means all requests until
	// ClearFaults is called.
	Times int
}

// faults contains the injected faults and counters. The zero value is ready for use.
type faults struct {
	mu            sync.Mutex // guards all following fields
	active        []Fault
	hangingCount  int
	requestCounts map[string]int // number of requests by path
}

// Inject adds a fault. If several faults apply to a request, the fault that was added first is
// used.
func (r *Registry) Inject(f Fault) {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.active = append(r.faults.active, f)
}

// ClearFaults removes all faults. Requests that are already hanging continue to hang.
func (r *Registry) ClearFaults() {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.active = nil
}

// HangingCount returns the number of requests that currently hang.
func (r *Registry) HangingCount() int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return r.faults.hangingCount
}

// RequestCount returns the number of requests with a path that contains part, with or without a
// fault.
func (r *Registry) RequestCount(part string) int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	n := 0
	for path, times := range r.faults.requestCounts {
		if strings.Contains(path, part) {
			n += times
		}
	}
	return n
}

// nextFault counts a request and returns the fault to apply to it. ok is false if there is no
// fault.
func (f *faults) nextFault(path string) (fault Fault, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requestCounts == nil {
		f.requestCounts = map[string]int{}
	}
	f.requestCounts[path]++
	for i, fault := range f.active {
		if !strings.Contains(path, fault.PathPart) {
			continue
		}
		if fault.Times == 1 {
			f.active = append(f.active[:i:i], f.active[i+1:]...)
		} else if fault.Times > 1 {
			f.active[i].Times--
		}
		return fault, true
	}
	return Fault{}, false
}

// changeHangingCount adds delta to the number of hanging requests.
func (f *faults) changeHangingCount(delta int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangingCount += delta
}

// injectFaults applies faults to requests. It passes a request without a fault to next.
func (r *Registry) injectFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fault, meets := r.faults.nextFault(req.URL.Path)
		switch {
		case !meets:
			next.ServeHTTP(w, req)
		case fault.Status != 0:
			writeError(w, fault.Status)
		default:
			r.faults.changeHangingCount(1)
			defer r.faults.changeHangingCount(-1)
			select {
			case <-req.Context().Done():
			case <-r.closing:
			}
		}
	})
}

// writeError responds with an error as JSON, as registries do.
func writeError(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// If this write fails, the client gets an incomplete response and reports an error.
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{
		"code": errorCode(status), "message": http.StatusText(status),
	}}})
}

// errorCode returns the code of the registry API for a status.
func errorCode(status int) string {
	switch status {
	case http.StatusForbidden:
		return "DENIED"
	case http.StatusNotFound:
		return "MANIFEST_UNKNOWN"
	case http.StatusTooManyRequests:
		return "TOOMANYREQUESTS"
	}
	return strings.ToUpper(strings.ReplaceAll(http.StatusText(status), " ", "_"))
}
