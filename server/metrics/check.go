package metrics

import "github.com/prometheus/client_golang/prometheus"

// checkCounts are the metrics about podd's own health checks.
type checkCounts struct {
	lastResult *prometheus.GaugeVec
	checks     *prometheus.CounterVec
}

func newCheckCounts() checkCounts {
	return checkCounts{
		lastResult: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck", Help: "Result of the last health check: 1 if it passed, else 0.",
		}, []string{"name", "type"}),
		checks: newCounterVec("kubernetes_healthchecks_total", "Health checks, by result.", "name", "type", "status"),
	}
}

func (c checkCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.lastResult, c.checks}
}

// RecordHealthCheck records the result of a health check of kind "healthz", "livez" or
// "readyz".
func (c checkCounts) RecordHealthCheck(kind, check string, err error) {
	status, value := "success", 1.0
	if err != nil {
		status, value = "error", 0
	}
	c.lastResult.WithLabelValues(check, kind).Set(value)
	c.checks.WithLabelValues(check, kind, status).Inc()
}
