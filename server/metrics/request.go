package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"podd/server/kube/request"
)

// requestCounts are of requests to podd's own faces.
type requestCounts struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
}

var requestLabels = []string{"long_running", "method", "path", "server_type"}

func newRequestCounts() requestCounts {
	return requestCounts{
		requests: counters("kubelet_http_requests_total", "Requests that came in.", requestLabels...),
		took:     histograms("kubelet_http_requests_duration_seconds", "How long answering requests took.", prometheus.DefBuckets, requestLabels...),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubelet_http_inflight_requests", Help: "Requests that are being answered.",
		}, requestLabels),
	}
}

func (c requestCounts) all() []prometheus.Collector {
	return []prometheus.Collector{c.requests, c.took, c.inFlight}
}

// Requests counts those to h; server is "readwrite" or "readonly".
func (c requestCounts) Requests(server string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := firstOf(r.URL.Path)
		labels := []string{strconv.FormatBool(request.Lasts(r)), methodOf(r.Method), path, server}
		c.requests.WithLabelValues(labels...).Inc()
		now := c.inFlight.WithLabelValues(labels...)
		now.Inc()
		defer func(began time.Time) {
			now.Dec()
			c.took.WithLabelValues(labels...).Observe(time.Since(began).Seconds())
		}(time.Now())
		h.ServeHTTP(w, r)
	})
}

// firstOf is the first element of a path that podd knows, else "other": who
// asks must not be able to make series.
func firstOf(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "":
		return "/"
	case "metrics":
		switch rest {
		case "cadvisor", "probes", "resource", "slis":
			return first + "/" + rest
		}
		return first
	case "api", "apis", "attach", "checkpoint", "configz", "containerLogs", "debug", "exec", "flagz", "healthz", "livez", "logs",
		"openapi", "page", "pods", "portForward", "readyz", "run", "runningpods", "stats", "statusz", "v1", "version":
		return first
	}
	return "other"
}

func methodOf(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
