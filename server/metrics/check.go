package metrics

import "github.com/prometheus/client_golang/prometheus"

// checkCounts are of the checks of podd's own health.
type checkCounts struct {
	last *prometheus.GaugeVec
	made *prometheus.CounterVec
}

func newCheckCounts() checkCounts {
	return checkCounts{
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck", Help: "Whether a check was passed the last time.",
		}, []string{"name", "type"}),
		made: counters("kubernetes_healthchecks_total", "Checks that were made, by what came of them.", "name", "type", "status"),
	}
}

func (c checkCounts) all() []prometheus.Collector { return []prometheus.Collector{c.last, c.made} }

// Checked tells what came of a check, and what was asked: "healthz", "livez" or
// "readyz".
func (c checkCounts) Checked(kind, check string, err error) {
	status, passed := "success", 1.0
	if err != nil {
		status, passed = "error", 0
	}
	c.last.WithLabelValues(check, kind).Set(passed)
	c.made.WithLabelValues(check, kind, status).Inc()
}
