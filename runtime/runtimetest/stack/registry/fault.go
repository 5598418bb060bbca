package registry

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// Fault is what goes wrong with a request instead of an answer.
type Fault struct {
	// In is a part of the paths it applies to, as in "/manifests/", "/blobs/"
	// or "/team/web/". "" applies to every request.
	In string
	// Status is the answer's status code, as in 429 or 503. Zero hangs: there
	// is no answer until the client gives up or the registry is closed.
	Status int
	// Times is how many requests it applies to. Zero: all until Heal.
	Times int
}

// faults is what was injected, and what it did. The zero value is ready.
type faults struct {
	mu      sync.Mutex // guards all following fields
	active  []Fault
	hanging int
	seen    map[string]int // requests by path
}

// Inject adds a fault. The first that applies to a request is taken.
func (r *Registry) Inject(f Fault) {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.active = append(r.faults.active, f)
}

// Heal removes all faults. Requests that hang go on hanging.
func (r *Registry) Heal() {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.active = nil
}

// Hanging is how many requests hang now.
func (r *Registry) Hanging() int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return r.faults.hanging
}

// Requests is how many requests there were whose path contains part, with or
// without a fault.
func (r *Registry) Requests(part string) int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	n := 0
	for path, times := range r.faults.seen {
		if strings.Contains(path, part) {
			n += times
		}
	}
	return n
}

// next counts a request and returns the fault that it meets.
func (f *faults) next(path string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	f.seen[path]++
	for i, fault := range f.active {
		if !strings.Contains(path, fault.In) {
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

func (f *faults) hang(by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hanging += by
}

// faulty gives requests the fault they meet, else to next.
func (r *Registry) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fault, meets := r.faults.next(req.URL.Path)
		switch {
		case !meets:
			next.ServeHTTP(w, req)
		case fault.Status != 0:
			refuse(w, fault.Status)
		default:
			r.faults.hang(1)
			defer r.faults.hang(-1)
			select {
			case <-req.Context().Done():
			case <-r.closing:
			}
		}
	})
}

// refuse answers as registries do: with the error as JSON.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that does not read the reason needs none.
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{
		"code":    strings.ToUpper(strings.ReplaceAll(http.StatusText(status), " ", "_")),
		"message": http.StatusText(status),
	}}})
}
