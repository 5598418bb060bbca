package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"

	"podd/server"
)

// maxVerbosity is klog's highest level.
const maxVerbosity = 10

// handleInternals registers the endpoints that show and change podd's internal
// state.
func (a *API) handleInternals(mux *http.ServeMux) {
	if !a.ProfilingEnabled {
		mux.Handle("/debug/pprof/", server.DisabledHandler("profiling endpoint is"))
	} else {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index) // /debug/pprof/cmdline is omitted because it shows secrets; use /flagz
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	if a.SetVerbosity == nil {
		mux.Handle("/debug/flags/v", server.DisabledHandler("flags endpoint is"))
	} else {
		mux.HandleFunc("PUT /debug/flags/v", a.setVerbosity)
	}
}

func (a *API) setVerbosity(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16))
	level, perr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31)
	if err != nil || perr != nil {
		http.Error(w, "the request body is not a number", http.StatusBadRequest)
		return
	}
	a.SetVerbosity(int(min(level, maxVerbosity)))
	fmt.Fprintf(w, "successfully set klog.logging.verbosity to %d", level)
}

func (a *API) configz(w http.ResponseWriter, r *http.Request) {
	server.Reply(w, http.StatusOK, map[string]any{"kubeletconfig": a.Config(r.Context())})
}
