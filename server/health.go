package server

import (
	"io"
	"net/http"
	"strings"
)

// Check is one thing that has to be well.
type Check struct {
	// Name is its path below /healthz: "syncloop".
	Name string
	// Func returns nil or what is wrong, fit for a user. It must be quick, not
	// block, and bear concurrent calls; whoever is asked about is not asked,
	// only the traces it left.
	Func func() error
}

// Health answers whether podd works: with "ok", or with status 500 and what is
// wrong in one line.
//
//	/healthz  /livez   Checks
//	/readyz            Checks and Ready
//	/healthz/NAME      that one of Checks; /healthz/ping is always ok, and so is
//	                   /healthz/log: podd keeps back nothing of its log
type Health struct {
	Checks []Check
	// Ready are for what is no reason to restart podd: a source not yet read.
	Ready []Check
	// Observed is told what came of each check that was made, with the kind of
	// question, "healthz", "livez" or "readyz"; nil: nobody is. It must be safe for
	// concurrent use.
	Observed func(kind, check string, err error)
}

// ServeHTTP implements http.Handler.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !readOnlyMethod(w, r) {
		return
	}
	checks, ok := h.checks(strings.TrimSuffix(r.URL.Path, "/"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	var wrong []string
	kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	for _, c := range checks {
		err := c.Func()
		if h.Observed != nil {
			h.Observed(kind, c.Name, err)
		}
		if err != nil {
			wrong = append(wrong, c.Name+": "+oneLine(err.Error()))
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if wrong != nil {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, strings.Join(wrong, "; ")+"\n")
		return
	}
	io.WriteString(w, "ok")
}

// checks are those behind a path; false for a path that is not served.
func (h *Health) checks(path string) ([]Check, bool) {
	switch path {
	case "/healthz", "/livez":
		return h.Checks, true
	case "/readyz":
		return append(h.Checks[:len(h.Checks):len(h.Checks)], h.Ready...), true
	case "/healthz/ping", "/healthz/log":
		return nil, true
	}
	name, below := strings.CutPrefix(path, "/healthz/")
	for _, c := range h.Checks {
		if below && c.Name == name {
			return []Check{c}, true
		}
	}
	return nil, false
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// readOnlyMethod says whether r only reads; otherwise it has answered 405. A
// body that came along is left unread: the connection is closed instead.
func readOnlyMethod(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "only GET and HEAD are served here", http.StatusMethodNotAllowed)
	return false
}
