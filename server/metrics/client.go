package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// clientCounts are the metrics about podd's own requests to the API server of the cluster.
type clientCounts struct {
	clientRequests *prometheus.CounterVec
	statusSync     prometheus.Histogram
}

func newClientCounts() clientCounts {
	return clientCounts{
		clientRequests: newCounterVec("rest_client_requests_total", "Requests to the API server, by status code, method and host.", "code", "method", "host"),
		statusSync: newHistogram("kubelet_pod_status_sync_duration_seconds", "Time in seconds from the first change of the status of a pod until the API server has the new status.",
			[]float64{.01, .05, .1, .5, 1, 5, 10, 20, 30, 45, 60}),
	}
}

// RecordClientRequest records a request to the API server. code is the status code of the response,
// or "<error>" if there was no response. host is the host and port of the API server.
func (c clientCounts) RecordClientRequest(code, method, host string) {
	c.clientRequests.WithLabelValues(code, method, host).Inc()
}

// RecordStatusSync records that the status of a pod was written to the API server. duration is the
// time since the first change of the status.
func (c clientCounts) RecordStatusSync(duration time.Duration) {
	c.statusSync.Observe(duration.Seconds())
}
