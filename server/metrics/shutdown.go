package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// shutdownTimes contains the metrics about the last graceful shutdown of the node.
type shutdownTimes struct{ shutdownStart, shutdownEnd prometheus.Gauge }

func newShutdownTimes() shutdownTimes {
	return shutdownTimes{
		shutdownStart: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubelet_graceful_shutdown_start_time_seconds", Help: "Unix time in seconds at which the last graceful shutdown of the node began; 0 if there was none.",
		}),
		shutdownEnd: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubelet_graceful_shutdown_end_time_seconds", Help: "Unix time in seconds at which all pods had stopped in the last graceful shutdown of the node, or at which it was cancelled; 0 if it did not end.",
		}),
	}
}

func (c shutdownTimes) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.shutdownStart, c.shutdownEnd}
}

// SetShutdownTimes sets when the last graceful shutdown of the node began and ended. end is zero if the
// shutdown has not ended.
func (c shutdownTimes) SetShutdownTimes(start, end time.Time) {
	c.shutdownStart.Set(unixSeconds(start))
	if end.IsZero() {
		c.shutdownEnd.Set(0)
		return
	}
	c.shutdownEnd.Set(unixSeconds(end))
}
