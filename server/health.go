package server

import (
	"io"
	"net/http"
	"slices"
	"strconv"
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
//
// As in the kubelet, the first three paths have parameters: exclude=NAME omits a check, and verbose requests
// one line for each check.
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
	kind, name, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	if name != "" {
		query = nil // a single check has no parameters
	}
	report := healthReport{excluded: query["exclude"]}
	for _, name := range []string{"ping", "log"} { // these never fail
		if !report.skip(name) {
			report.add(name, nil)
		}
	}
	for _, c := range checks {
		if report.skip(c.Name) {
			continue
		}
		err := c.Func()
		if h.OnCheck != nil {
			h.OnCheck(kind, c.Name, err)
		}
		report.add(c.Name, err)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if report.failures != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
	switch {
	case query.Has("verbose"):
		io.WriteString(w, report.formatVerbose(kind))
	case report.failures != nil:
		io.WriteString(w, strings.Join(report.failures, "; ")+"\n")
	default:
		io.WriteString(w, "ok")
	}
}

// A healthReport contains the results of checks.
type healthReport struct {
	excluded []string // the names in the parameter exclude
	names    []string // the names of the checks
	lines    []string // a line about each check
	failures []string // the errors of the checks that have failed
}

// skip reports whether the client has excluded a check. If it has, skip adds this to the report.
func (p *healthReport) skip(name string) bool {
	if !slices.Contains(p.excluded, name) {
		return false
	}
	p.names, p.lines = append(p.names, name), append(p.lines, "[+]"+name+" excluded: ok")
	return true
}

// add records that a check has run. The check has failed if err is not nil.
func (p *healthReport) add(name string, err error) {
	p.names = append(p.names, name)
	if err == nil {
		p.lines = append(p.lines, "[+]"+name+" ok")
		return
	}
	message := collapseSpace(err.Error())
	p.lines, p.failures = append(p.lines, "[-]"+name+" failed: "+message), append(p.failures, name+": "+message)
}

// formatVerbose returns the report in the kubelet's format, but with the errors. kind is the kind of the
// request, such as "healthz".
func (p *healthReport) formatVerbose(kind string) string {
	lines := p.lines
	var unknown []string
	for _, name := range p.excluded {
		if !slices.Contains(p.names, name) {
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	if unknown != nil {
		lines = append(lines, "warn: some health checks cannot be excluded: no matches for "+strings.Join(unknown, ","))
	}
	if p.failures != nil {
		return strings.Join(append(lines, kind+" check failed\n"), "\n")
	}
	return strings.Join(append(lines, kind+" check passed\n"), "\n")
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
