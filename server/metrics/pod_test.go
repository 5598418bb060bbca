package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// TestPodCounts_Evictions checks that an eviction is counted once, with its signal.
func TestPodCounts_Evictions(t *testing.T) {
	for signal, want := range map[string]string{"memory.available": "memory.available", "": "localStorage"} {
		c := newPodCounts()
		before, after := &server.PodView{Pod: &v1.Pod{}}, &server.PodView{Pod: &v1.Pod{}, EvictionSignal: signal}
		after.Pod.Status.Reason = evicted
		c.update(before, after)
		c.update(after, after)
		registry := prometheus.NewRegistry()
		registry.MustRegister(c.evictions)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || len(families[0].Metric) != 1 {
			t.Fatalf("signal %q: got %v, error %v; want one metric", signal, families, err)
		}
		m := families[0].Metric[0]
		if label, n := m.Label[0].GetValue(), m.GetCounter().GetValue(); label != want || n != 1 {
			t.Errorf("signal %q: got %v evictions with the label %s, want 1 with %s", signal, n, label, want)
		}
	}
}
