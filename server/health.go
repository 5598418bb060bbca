package server

import (
	"io"
	"net/http"
	"strings"
)

// Check is a health check of one component.
type Check struct {
	// Name is the path of the check below /healthz, such as "syncloop".
	Name string
	// Func returns nil or an error that is shown to users. It must be fast, must not block, and
	// must be safe for concurrent use. It must inspect the recorded state of the component and must
	// not call the component.
	Func func() error
}

// Health serves health checks. The response is "ok", or status 500 with the errors in
// one line.
//
//	/healthz  /livez  /readyz   Checks
//	/healthz/NAME               the check with the name
//	/healthz/ping /healthz/log  always "ok"; podd does not buffer its log, so logging
//	                            cannot hang
type Health struct {
	Checks []Check
	// OnCheck is called with the result of each check and the kind of request:
	// "healthz", "livez" or "readyz". It may be nil. It must be safe for concurrent
	// use.
	OnCheck func(kind, check string, err error)
}

// ServeHTTP implements http.Handler.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !checkReadOnlyMethod(w, r) {
		return
	}
	checks, ok := h.checks(strings.TrimSuffix(r.URL.Path, "/"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	var failures []string
	kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	for _, c := range checks {
		err := c.Func()
		if h.OnCheck != nil {
			h.OnCheck(kind, c.Name, err)
		}
		if err != nil {
			failures = append(failures, c.Name+": "+collapseSpace(err.Error()))
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if failures != nil {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, strings.Join(failures, "; ")+"\n")
		return
	}
	io.WriteString(w, "ok")
}

// checks returns the checks of a path. ok is false if the path is not served.
func (h *Health) checks(path string) (checks []Check, ok bool) {
	switch path {
	case "/healthz", "/livez", "/readyz":
		return h.Checks, true
	case "/healthz/ping", "/healthz/log":
		return nil, true
	}
	name, isCheckPath := strings.CutPrefix(path, "/healthz/")
	for _, c := range h.Checks {
		if isCheckPath && c.Name == name {
			return []Check{c}, true
		}
	}
	return nil, false
}

// collapseSpace returns s with each run of white space replaced by one space.
func collapseSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// checkReadOnlyMethod reports whether the method of r is GET or HEAD. It responds to other methods
// with 405. It closes the connection of a request with a body, because podd does not read the body.
func checkReadOnlyMethod(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "only the methods GET and HEAD are allowed", http.StatusMethodNotAllowed)
	return false
}
