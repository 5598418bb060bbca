package metrics

import "github.com/prometheus/client_golang/prometheus"

// podsRequests contains the metrics about requests to the gRPC API of pods.
type podsRequests struct {
	all      *prometheus.CounterVec
	byMethod map[string]*prometheus.CounterVec
}

// podsAPIVersion is the only version of the gRPC API of pods.
const podsAPIVersion = "v1alpha1"

func newPodsRequests() podsRequests {
	counter := func(name, help string) *prometheus.CounterVec {
		return newCounterVec("kubelet_pod_requests_"+name, help, "server_api_version", "status_code")
	}
	return podsRequests{
		all: counter("total", "Requests to the gRPC API of pods, by version of the API and gRPC code of the result."),
		byMethod: map[string]*prometheus.CounterVec{
			"ListPods":  counter("list_total", "Requests to ListPods of the gRPC API of pods, by version of the API and gRPC code of the result."),
			"GetPod":    counter("get_total", "Requests to GetPod of the gRPC API of pods, by version of the API and gRPC code of the result."),
			"WatchPods": counter("watch_total", "Requests to WatchPods of the gRPC API of pods that have ended, by version of the API and gRPC code of the result."),
		},
	}
}

func (r podsRequests) collectors() []prometheus.Collector {
	collectors := []prometheus.Collector{r.all}
	for _, c := range r.byMethod {
		collectors = append(collectors, c)
	}
	return collectors
}

// RecordPodsRequest records a request to the gRPC API of pods. method is the requested method, such
// as "ListPods", and code is the gRPC code of the result, such as "OK".
func (r podsRequests) RecordPodsRequest(method, code string) {
	r.all.WithLabelValues(podsAPIVersion, code).Inc()
	if c := r.byMethod[method]; c != nil {
		c.WithLabelValues(podsAPIVersion, code).Inc()
	}
}
