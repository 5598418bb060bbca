package stats

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A collectorsFunc returns the collectors for a request. It is also an http.Handler that serves the
// metrics of these collectors. If a metric has an error, the remaining metrics are served.
type collectorsFunc func(ctx context.Context) []prometheus.Collector

func (s collectorsFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	registry := prometheus.NewRegistry()
	for _, c := range s(r.Context()) {
		if err := registry.Register(c); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
}
