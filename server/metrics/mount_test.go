package metrics

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// TestMounts checks that the duration of a mount begins when podd observes the pod, and that it includes only
// the first mount of each volume before the pod has started.
func TestMounts(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(5000+s, 0) }
	m := New(Options{KubernetesVersion: "v1.37.2"})
	before := &server.PodView{Pod: named("web-n1", v1.PodPending)}
	after := &server.PodView{Pod: named("web-n1", v1.PodRunning, v1.ContainerStatus{Name: "main", ContainerID: "containerd://1"})}
	mount := func(volume string, second int64) {
		m.RecordMount(Mount{PodUID: before.Pod.UID, Volume: volume, Plugin: "kubernetes.io/" + volume, At: at(second)})
	}
	mount("early", 0)
	m.UpdatePod(nil, before, at(1))
	mount("nfs", 3)
	mount("nfs", 4)
	mount("secret", 5)
	mount("secret", 6)
	m.RecordMount(Mount{PodUID: "other", Volume: "nfs", Plugin: "kubernetes.io/nfs", At: at(9)})
	m.UpdatePod(before, after, at(7))
	mount("secret", 8)
	text := scrape(m.Handler(Inputs{State: server.NewLatestView(view())}), "/metrics")
	for _, want := range []string{
		`_count{operation_name="overall_volume_mount",plugin_name="kubernetes.io/nfs"} 1`,
		`_sum{operation_name="overall_volume_mount",plugin_name="kubernetes.io/nfs"} 2`,
		`_count{operation_name="overall_volume_mount",plugin_name="kubernetes.io/secret"} 1`,
		`_sum{operation_name="overall_volume_mount",plugin_name="kubernetes.io/secret"} 4`,
	} {
		if !strings.Contains(text, "\nvolume_operation_total_seconds"+want+"\n") {
			t.Errorf("got no line volume_operation_total_seconds%s", want)
		}
	}
	if strings.Contains(text, "kubernetes.io/early") {
		t.Error("got a duration for a pod that was not observed before, want none")
	}
}
