package metrics

import "github.com/prometheus/client_golang/prometheus"

// checkCounts are the metrics about podd's own health checks.
type checkCounts struct {
	last *prometheus.GaugeVec
	made *prometheus.CounterVec
}

func newCheckCounts() checkCounts {
	return checkCounts{
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck", Help: "Result of the last health check: 1 if it passed, else 0.",
		}, []string{"name", "type"}),
		made: counters("kubernetes_healthchecks_total", "Health checks by result.", "name", "type", "status"),
	}
}

func (c checkCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.last, c.made}
}

// RecordHealthCheck records the result of a health check of kind "healthz", "livez" or
// "readyz".
func (c checkCounts) RecordHealthCheck(kind, check string, err error) {
	status, passed := "success", 1.0
	if err != nil {
		status, passed = "error", 0
	}
	c.last.WithLabelValues(check, kind).Set(passed)
	c.made.WithLabelValues(check, kind, status).Inc()
}
