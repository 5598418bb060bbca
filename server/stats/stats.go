// Package stats serves the resource usage of the node and its pods in the kubelet's
// formats:
//
//	GET POST  /stats/summary[?only_cpu_and_memory=true]   JSON
//	GET       /metrics/resource   for metrics-server      Prometheus's text format
//	GET       /metrics/cadvisor   for dashboards          Prometheus's text format
//
// The package keeps no data between requests. The Meter reuses its measurements for one second, so
// that many concurrent requests need only one measurement.
package stats

import (
	"net/http"

	"podd/server"
)

// Handler returns a handler that serves all three paths.
func Handler(m server.Meter) http.Handler {
	mux := http.NewServeMux()
	for _, method := range []string{"GET ", "POST "} {
		mux.Handle(method+"/stats/summary", summaryHandler{m})
		mux.Handle(method+"/stats/summary/{$}", summaryHandler{m})
	}
	mux.Handle("GET /metrics/resource", resourceHandler(m))
	mux.Handle("GET /metrics/cadvisor", CadvisorHandler(m))
	return mux
}

type summaryHandler struct{ meter server.Meter }

func (s summaryHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	if err := r.ParseForm(); err != nil {
		err := server.NewBodyError("reading the request body", err)
		http.Error(w, err.Error(), err.Status)
		return
	}
	values := r.Form["only_cpu_and_memory"]
	summary, err := s.meter.Summary(r.Context(), len(values) == 1 && values[0] == "true")
	if err != nil {
		http.Error(w, "measuring resource usage: "+err.Error(), http.StatusInternalServerError)
		return
	}
	server.Reply(w, http.StatusOK, summary)
}

// maxFormBytes limits the body of a POST request, in bytes.
const maxFormBytes = 4 << 10
