package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Checks counts what came of checks of podd's health, for those who measure how
// often it is well:
//
//	GET /metrics/slis
//
// It may be used concurrently.
type Checks struct {
	last  *prometheus.GaugeVec
	count *prometheus.CounterVec
}

// NewChecks returns Checks that have counted nothing.
func NewChecks() *Checks {
	return &Checks{
		last:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubernetes_healthcheck", Help: "What came of a check of health the last time: 1 when all was well, else 0."}, []string{"name", "type"}),
		count: counters("kubernetes_healthchecks_total", "Checks of health, by what came of them.", "name", "type", "status"),
	}
}

// Checked tells what came of a check.
func (c *Checks) Checked(name string, err error) {
	well, status := 1.0, "success"
	if err != nil {
		well, status = 0, "error"
	}
	c.last.WithLabelValues(name, "healthz").Set(well)
	c.count.WithLabelValues(name, "healthz", status).Inc()
}

// Handler serves what was counted.
func (c *Checks) Handler() http.Handler {
	all := prometheus.NewRegistry()
	all.MustRegister(c.last, c.count)
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{})
}
