package metrics

import "github.com/prometheus/client_golang/prometheus"

// clientCounts are the metrics about podd's own requests to the API server of the cluster.
type clientCounts struct{ clientRequests *prometheus.CounterVec }

func newClientCounts() clientCounts {
	return clientCounts{newCounterVec("rest_client_requests_total", "Requests to the API server, by status code, method and host.", "code", "method", "host")}
}

// RecordClientRequest records a request to the API server. code is the status code of the response,
// or "<error>" if there was no response. host is the host and port of the API server.
func (c clientCounts) RecordClientRequest(code, method, host string) {
	c.clientRequests.WithLabelValues(code, method, host).Inc()
}
