package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"podd/server/kube/request"
)

// requestCounts are the metrics about requests to podd's endpoints.
type requestCounts struct {
	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec
	inFlight        *prometheus.GaugeVec
}

var requestLabels = []string{"long_running", "method", "path", "server_type"}

func newRequestCounts() requestCounts {
	return requestCounts{
		requests:        newCounterVec("kubelet_http_requests_total", "Received HTTP requests.", requestLabels...),
		requestDuration: newHistogramVec("kubelet_http_requests_duration_seconds", "Duration in seconds of HTTP requests.", prometheus.DefBuckets, requestLabels...),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubelet_http_inflight_requests", Help: "HTTP requests that are being served.",
		}, requestLabels),
	}
}

func (c requestCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.requests, c.requestDuration, c.inFlight}
}

// CountRequests returns a handler that passes requests to h and records them. server is
// the label of the endpoint, "readwrite" or "readonly".
func (c requestCounts) CountRequests(server string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := pathLabel(r.URL.Path)
		labels := []string{strconv.FormatBool(request.IsLongRunning(r)), methodLabel(r.Method), path, server}
		c.requests.WithLabelValues(labels...).Inc()
		inFlight := c.inFlight.WithLabelValues(labels...)
		inFlight.Inc()
		defer func(startTime time.Time) {
			inFlight.Dec()
			c.requestDuration.WithLabelValues(labels...).Observe(time.Since(startTime).Seconds())
		}(time.Now())
		h.ServeHTTP(w, r)
	})
}

// pathLabel returns the first element of a path if podd serves such paths. For all other paths it
// returns "other", because clients must not be able to create an unlimited number of series.
func pathLabel(path string) string {
	firstSegment, remaining, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch firstSegment {
	case "":
		return "/"
	case "metrics":
		switch remaining {
		case "cadvisor", "probes", "resource", "slis":
			return firstSegment + "/" + remaining
		}
		return firstSegment
	case "api", "apis", "attach", "checkpoint", "configz", "containerLogs", "debug", "exec", "flagz", "healthz", "livez", "logs",
		"openapi", "page", "pods", "portForward", "readyz", "run", "runningpods", "spec", "stats", "statusz", "v1", "version":
		return firstSegment
	}
	return "other"
}

func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
