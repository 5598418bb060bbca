package stats

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// collectorsFunc returns the collectors for a request. As an http.Handler, it serves their metrics.
// If a metric has an error, the remaining metrics are served.
type collectorsFunc func(ctx context.Context) []prometheus.Collector

func (s collectorsFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := prometheus.NewRegistry()
	for _, c := range s(r.Context()) {
		if err := all.Register(c); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
}
