// Package stats serves what the node and its pods use, in the words of the
// kubelet:
//
//	GET POST  /stats/summary[?only_cpu_and_memory=true]   JSON
//	GET       /metrics/resource   for metrics-server      Prometheus's text
//	GET       /metrics/cadvisor   for dashboards          the same
//
// Nothing is kept between two requests; the Meter keeps what it read for a
// second, so that many who ask cost as much as one.
package stats

import (
	"net/http"

	"podd/server"
)

// Handler serves all three paths from m.
func Handler(m server.Meter) http.Handler {
	mux := http.NewServeMux()
	for _, method := range []string{"GET ", "POST "} {
		mux.Handle(method+"/stats/summary", summary{m})
		mux.Handle(method+"/stats/summary/{$}", summary{m})
	}
	mux.Handle("GET /metrics/resource", Resource(m))
	mux.Handle("GET /metrics/cadvisor", Cadvisor(m))
	return mux
}

type summary struct{ meter server.Meter }

func (s summary) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		err := server.Unread("reading what is asked for", err)
		http.Error(w, err.Error(), err.Status)
		return
	}
	only := r.Form["only_cpu_and_memory"]
	out, err := s.meter.Summary(r.Context(), len(only) == 1 && only[0] == "true")
	if err != nil {
		http.Error(w, "reading what pods use: "+err.Error(), http.StatusInternalServerError)
		return
	}
	server.Reply(w, http.StatusOK, out)
}

// maxForm bounds what a POST may have to say.
const maxForm = 4 << 10
