package metrics

import "github.com/prometheus/client_golang/prometheus"

// podResourcesRequests contains the metrics about requests to the pod resources API.
type podResourcesRequests struct {
	all                              *prometheus.CounterVec
	requestsByMethod, errorsByMethod map[string]*prometheus.CounterVec
}

func newPodResourcesRequests() podResourcesRequests {
	counter := func(name, help string) *prometheus.CounterVec {
		return newCounterVec("kubelet_pod_resources_endpoint_"+name, help, "server_api_version")
	}
	return podResourcesRequests{
		all: counter("requests_total", "Requests to the pod resources API."),
		requestsByMethod: map[string]*prometheus.CounterVec{
			"List":                    counter("requests_list", "Requests to List of the pod resources API."),
			"Get":                     counter("requests_get", "Requests to Get of the pod resources API."),
			"GetAllocatableResources": counter("requests_get_allocatable", "Requests to GetAllocatableResources of the pod resources API."),
		},
		errorsByMethod: map[string]*prometheus.CounterVec{
			"List":                    counter("errors_list", "Requests to List of the pod resources API that failed."),
			"Get":                     counter("errors_get", "Requests to Get of the pod resources API that failed."),
			"GetAllocatableResources": counter("errors_get_allocatable", "Requests to GetAllocatableResources of the pod resources API that failed."),
		},
	}
}

func (r podResourcesRequests) collectors() []prometheus.Collector {
	collectors := []prometheus.Collector{r.all}
	for _, counters := range []map[string]*prometheus.CounterVec{r.requestsByMethod, r.errorsByMethod} {
		for _, c := range counters {
			collectors = append(collectors, c)
		}
	}
	return collectors
}

// RecordPodResourcesRequest records a request to the pod resources API. version is the version of the
// API, such as "v1", and method the requested method, such as "List". Like the kubelet, it counts the
// methods only of version v1.
func (r podResourcesRequests) RecordPodResourcesRequest(version, method string, hasFailed bool) {
	r.all.WithLabelValues(version).Inc()
	if version != "v1" {
		return
	}
	if c := r.requestsByMethod[method]; c != nil {
		c.WithLabelValues(version).Inc()
	}
	if c := r.errorsByMethod[method]; c != nil && hasFailed {
		c.WithLabelValues(version).Inc()
	}
}
