package stats

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrape serves the metrics of the collectors that the function returns for a
// request. An error in one metric affects only that metric.
type scrape func(ctx context.Context) []prometheus.Collector

func (s scrape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := prometheus.NewRegistry()
	for _, c := range s(r.Context()) {
		if err := all.Register(c); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
}
