package metrics

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// TestUserNamespaceCounts checks which attempts to start a pod with a user namespace count as failed.
func TestUserNamespaceCounts(t *testing.T) {
	const reason = "RunContainerError"
	create := func(m *Metrics, err error) { m.RecordSandbox(Sandbox{UID: "u", HasUserNamespace: true, Err: err}) }
	pod := &server.PodView{Pod: named("web-n1", v1.PodPending)}
	pod.Pod.UID = "u"
	tests := []struct {
		name                   string
		run                    func(*Metrics)
		wantStarted, wantFails float64
	}{
		{"sandbox and container start", func(m *Metrics) { create(m, nil); m.RecordContainerStart("u", "container", "") }, 1, 0},
		{"sandbox fails", func(m *Metrics) { create(m, errors.New("no IDs")) }, 1, 1},
		{"pod deleted while the sandbox is created", func(m *Metrics) {
			m.RecordSandbox(Sandbox{UID: "u", HasUserNamespace: true, Err: errors.New("canceled"), Canceled: true})
		}, 1, 0},
		{"container fails", func(m *Metrics) { create(m, nil); m.RecordContainerStart("u", "container", reason) }, 1, 1},
		{"container fails again in the same sandbox", func(m *Metrics) {
			create(m, nil)
			m.RecordContainerStart("u", "container", reason)
			m.RecordContainerStart("u", "container", reason)
		}, 1, 1},
		{"container fails after a restart", func(m *Metrics) {
			create(m, nil)
			m.RecordContainerStart("u", "container", "")
			m.RecordContainerStart("u", "container", reason)
		}, 1, 0},
		{"container of another pod fails", func(m *Metrics) { create(m, nil); m.RecordContainerStart("other", "container", reason) }, 1, 0},
		{"no user namespace", func(m *Metrics) {
			m.RecordSandbox(Sandbox{UID: "u"})
			m.RecordContainerStart("u", "container", reason)
		}, 0, 0},
		{"pod deleted", func(m *Metrics) {
			create(m, nil)
			m.DeletePod(pod, time.Unix(1, 0))
			m.RecordContainerStart("u", "container", reason)
		}, 1, 0},
		{"pod replaced", func(m *Metrics) {
			create(m, nil)
			m.UpdatePod(pod, &server.PodView{Pod: named("web-n1", v1.PodPending)}, time.Unix(1, 0))
			m.RecordContainerStart("u", "container", reason)
		}, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := New(Options{})
			tt.run(m)
			r := prometheus.NewRegistry()
			r.MustRegister(m.userNamespaces.collectors()...)
			families, err := r.Gather()
			if err != nil || len(families) != 2 {
				t.Fatalf("got %v, error %v; want two metrics", families, err)
			}
			failed, started := families[0].Metric[0].GetCounter().GetValue(), families[1].Metric[0].GetCounter().GetValue()
			if started != tt.wantStarted || failed != tt.wantFails {
				t.Errorf("got %v attempts, %v failed; want %v, %v failed", started, failed, tt.wantStarted, tt.wantFails)
			}
		})
	}
}
