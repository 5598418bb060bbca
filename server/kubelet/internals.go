package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"strings"
	"time"

	"podd/server"
)

// notParseableWarning is the kubelet's first line of responses that are meant for human readers.
const notParseableWarning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n\n"

// maxVerbosity is klog's highest level.
const maxVerbosity = 10

// handleInternals registers the endpoints that show and change podd's internal
// state.
func (a *API) handleInternals(mux *http.ServeMux) {
	if !a.Profiling {
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

func (a *API) configz(w http.ResponseWriter, _ *http.Request) {
	server.Reply(w, http.StatusOK, map[string]any{"kubeletconfig": a.Config})
}

func (a *API) flagz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "\nkubelet flagz\n"+notParseableWarning)
	for _, f := range a.Flags {
		fmt.Fprintf(w, "%s=%s\n", f.Name, f.Value)
	}
}

func (a *API) statusz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "\nkubelet statusz\n%sStarted: %s\nUp: %s\nGo version: %s\nBinary version: podd %s\n",
		notParseableWarning, a.StartTime.UTC().Format(time.UnixDate), time.Since(a.StartTime).Round(time.Second), runtime.Version(), a.State.View().Version)
}
