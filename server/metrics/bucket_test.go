package metrics

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// kubeletBuckets are the buckets of the kubelet's histograms. For other histograms, the kubelet has
// prometheus.DefBuckets.
var kubeletBuckets = map[string][]float64{
	"csi_operations_seconds":                              {.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	"storage_operation_duration_seconds":                  {.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	"volume_operation_total_seconds":                      {.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	"kubelet_certificate_manager_server_rotation_seconds": {60, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600, 90 * 24 * 3600, 180 * 24 * 3600, 360 * 24 * 3600, 4 * 360 * 24 * 3600},
	"kubelet_containers_per_pod_count":                    {1, 2, 4, 8, 16},
	"kubelet_image_pull_duration_seconds":                 {1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600},
	"kubelet_pod_deferred_resize_duration_seconds":        {5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600},
	"kubelet_pod_resize_duration_milliseconds":            {10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000},
	"kubelet_pod_start_duration_seconds":                  startBuckets,
	"kubelet_pod_start_sli_duration_seconds":              startBuckets,
	"kubelet_pod_start_total_duration_seconds":            startBuckets,
	"kubelet_pod_status_sync_duration_seconds":            {.01, .05, .1, .5, 1, 5, 10, 20, 30, 45, 60},
	"kubelet_runtime_operations_duration_seconds":         prometheus.ExponentialBuckets(.005, 2.5, 14),
}

var startBuckets = []float64{.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}

// TestBuckets checks that each histogram has all buckets of the kubelet, because a query may add the buckets
// of nodes with podd and of nodes with a kubelet.
func TestBuckets(t *testing.T) {
	m := exercised()
	m.Handler(inputs())
	missing := maps.Clone(kubeletBuckets)
	for _, r := range []*prometheus.Registry{m.mainRegistry, m.probeRegistry} {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			h := f.GetMetric()[0].GetHistogram()
			if h == nil {
				continue
			}
			var got []float64
			for _, b := range h.GetBucket() {
				got = append(got, b.GetUpperBound())
			}
			delete(missing, f.GetName())
			want, ok := kubeletBuckets[f.GetName()]
			if !ok {
				want = prometheus.DefBuckets
			}
			for _, bound := range want {
				if !slices.Contains(got, bound) {
					t.Errorf("%s: got the buckets %v, want %v", f.GetName(), got, want)
					break
				}
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("got no histogram with the name of %q", slices.Sorted(maps.Keys(missing)))
	}
}
