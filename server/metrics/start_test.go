package metrics

import (
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// TestStarts_SLI checks that the SLI excludes the time spent pulling images and running init
// containers, even if these overlap.
func TestStarts_SLI(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(5000+s, 0) }
	m := New(Options{KubernetesVersion: "v1.34.4"})
	before := &server.PodView{Pod: named("web-n1", v1.PodPending)}
	ran := v1.ContainerStatus{Name: "main", ContainerID: "containerd://1"}
	after := &server.PodView{Pod: named("web-n1", v1.PodRunning, ran)}
	start := metav1.NewTime(at(0))
	after.Pod.Status.StartTime = &start
	after.Pod.Status.InitContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{
		Terminated: &v1.ContainerStateTerminated{StartedAt: metav1.NewTime(at(4)), FinishedAt: metav1.NewTime(at(7))},
	}}}
	m.UpdatePod(nil, before, at(0))
	m.RecordFirstAction("uid-web-n1", at(1))
	m.RecordFirstAction("uid-web-n1", at(2))
	m.RecordPullTime("uid-web-n1", at(1), at(3))
	m.RecordPullTime("uid-web-n1", at(2), at(5))
	m.RecordPullTime("other", at(0), at(10))
	m.UpdatePod(before, after, at(10))
	m.UpdatePod(after, after, at(11))
	text := scrape(m.Handler(Inputs{State: server.NewLatestView(view())}), "/metrics")
	for _, want := range []string{
		"kubelet_pod_start_duration_seconds_sum 10", "kubelet_pod_start_total_duration_seconds_sum 10",
		"kubelet_pod_start_sli_duration_seconds_sum 4", "kubelet_pod_start_sli_duration_seconds_count 1",
		"kubelet_first_network_pod_start_sli_duration_seconds 4",
		"kubelet_pod_worker_start_duration_seconds_sum 1", "kubelet_pod_worker_start_duration_seconds_count 1",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("missing %s", want)
		}
	}
	if len(m.byUID) > 0 {
		t.Errorf("got %d tracked pods, want 0", len(m.byUID))
	}
}

// TestStarts_Created checks when the start latency of a pod begins. A pod of an API server begins to start
// when it is created, and a static pod when podd first observes it. The time in the status of a pod, at
// which podd first acted on the pod, does not matter.
func TestStarts_Created(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(5000+s, 0) }
	for name, test := range map[string]struct {
		isStatic  bool
		createdAt int64
		wantTotal string
	}{
		"pod of an API server":                        {false, -4, "14"},
		"pod of an API server with a different clock": {false, 60, "0"},
		"static pod": {true, -4, "10"},
	} {
		m := New(Options{KubernetesVersion: "v1.37.2", IsStatic: func(*v1.Pod) bool { return test.isStatic }})
		before := &server.PodView{Pod: named("web-n1", v1.PodPending)}
		before.Pod.CreationTimestamp = metav1.NewTime(at(test.createdAt))
		after := &server.PodView{Pod: named("web-n1", v1.PodRunning, v1.ContainerStatus{Name: "main", ContainerID: "containerd://1"})}
		after.Pod.CreationTimestamp = before.Pod.CreationTimestamp
		after.Pod.Status.StartTime = new(metav1.NewTime(at(3)))
		m.UpdatePod(nil, before, at(0))
		m.RecordFirstAction(before.Pod.UID, at(3))
		m.UpdatePod(before, after, at(10))
		text := scrape(m.Handler(Inputs{State: server.NewLatestView(view())}), "/metrics")
		for _, want := range []string{
			"kubelet_pod_start_duration_seconds_sum 10", "kubelet_pod_start_total_duration_seconds_sum " + test.wantTotal,
			"kubelet_pod_start_sli_duration_seconds_sum " + test.wantTotal,
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("%s: missing %s", name, want)
			}
		}
	}
}

// TestStarts_Tracked checks which pods the total latency and the SLI include. They include no pod that an earlier podd
// began to start, because the time until podd was restarted would count, and, on a node of a cluster, no static
// pod. The latency from the first observation includes all pods.
func TestStarts_Tracked(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(5000+s, 0) }
	for name, test := range map[string]struct {
		hasCluster, isStatic bool
		startTime            *metav1.Time
		want                 string
	}{
		"new pod of an API server":                {true, false, nil, "1"},
		"pod that podd began to start":            {true, false, new(metav1.NewTime(at(1))), "1"},
		"pod that an earlier podd began to start": {true, false, new(metav1.NewTime(at(-3600))), "0"},
		"static pod without a cluster":            {false, true, nil, "1"},
		"static pod in a cluster":                 {true, true, nil, "0"},
	} {
		m := New(Options{KubernetesVersion: "v1.37.2", StartTime: at(0), HasCluster: test.hasCluster, IsStatic: func(*v1.Pod) bool { return test.isStatic }})
		before := &server.PodView{Pod: named("web-n1", v1.PodPending)}
		after := &server.PodView{Pod: named("web-n1", v1.PodRunning, v1.ContainerStatus{Name: "main", ContainerID: "containerd://1"})}
		for _, p := range []*v1.Pod{before.Pod, after.Pod} {
			p.CreationTimestamp, p.Status.StartTime = metav1.NewTime(at(-7200)), test.startTime
		}
		m.UpdatePod(nil, before, at(1))
		m.RecordFirstAction(before.Pod.UID, at(1))
		m.UpdatePod(before, after, at(2))
		text := scrape(m.Handler(Inputs{State: server.NewLatestView(view())}), "/metrics")
		firstNetworkPod, _, _ := strings.Cut(text[strings.Index(text, "\nkubelet_first_network_pod_start_sli_duration_seconds ")+1:], "\n")
		if hasValue := !strings.HasSuffix(firstNetworkPod, " 0"); hasValue != (test.want == "1") {
			t.Errorf("%s: got %s, want a value other than 0: %t", name, firstNetworkPod, test.want == "1")
		}
		for _, want := range []string{
			"kubelet_pod_start_total_duration_seconds_count " + test.want, "kubelet_pod_start_sli_duration_seconds_count " + test.want,
			"kubelet_pod_start_duration_seconds_sum 1", "kubelet_pod_start_duration_seconds_count 1",
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("%s: missing %s", name, want)
			}
		}
	}
}

// TestStarts_Stateful checks that the SLI excludes pods with volumes that may contain data of users.
func TestStarts_Stateful(t *testing.T) {
	for name, test := range map[string]struct {
		source v1.VolumeSource
		want   string
	}{
		"Secret":    {v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}, "1"},
		"ConfigMap": {v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}, "1"},
		"downward":  {v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}, "1"},
		"empty":     {v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}, "1"},
		"projected": {v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}, "1"},
		"claim":     {v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}}, "0"},
		"host path": {v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{}}, "0"},
	} {
		m := New(Options{KubernetesVersion: "v1.37.2"})
		before := &server.PodView{Pod: named("web-n1", v1.PodPending)}
		after := &server.PodView{Pod: named("web-n1", v1.PodRunning, v1.ContainerStatus{Name: "main", ContainerID: "containerd://1"})}
		for _, p := range []*v1.Pod{before.Pod, after.Pod} {
			p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: test.source}}
		}
		at := time.Unix(5000, 0)
		m.UpdatePod(nil, before, at)
		m.RecordFirstAction(before.Pod.UID, at)
		m.UpdatePod(before, after, at.Add(time.Second))
		text := scrape(m.Handler(Inputs{State: server.NewLatestView(view())}), "/metrics")
		for _, want := range []string{
			"kubelet_pod_start_total_duration_seconds_count 1", "kubelet_pod_start_sli_duration_seconds_count " + test.want,
			"kubelet_first_network_pod_start_sli_duration_seconds " + test.want,
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("%s: missing %s", name, want)
			}
		}
	}
}

// TestStarts_NotStarted checks that nothing is recorded for a pod that was already running, or that
// is deleted or replaced before it runs, and that no data about it is retained.
func TestStarts_NotStarted(t *testing.T) {
	now := metav1.Unix(5000, 0)
	running := func() *v1.Pod {
		p := named("web-n1", v1.PodRunning, v1.ContainerStatus{Name: "main", ContainerID: "containerd://1"})
		p.Status.StartTime = &now
		return p
	}
	ends := running()
	ends.DeletionTimestamp = &now
	failed := named("web-n1", v1.PodFailed)
	edited := running()
	edited.UID = "next"
	for name, after := range map[string]*v1.Pod{"found running": running(), "removed": ends, "failed": failed, "replaced": edited} {
		m := New(Options{KubernetesVersion: "v1.34.4"})
		before := &server.PodView{Pod: named("web-n1", v1.PodPending)}
		m.UpdatePod(nil, before, now.Time)
		if name != "found running" {
			m.RecordFirstAction("uid-web-n1", now.Time)
		}
		m.UpdatePod(before, &server.PodView{Pod: after}, now.Add(time.Hour))
		text := scrape(m.Handler(Inputs{State: server.NewLatestView(view())}), "/metrics")
		if !strings.Contains(text, "kubelet_pod_start_duration_seconds_count 0\n") || len(m.byUID) > 0 {
			t.Errorf("%s: got a recorded start or %d tracked pods, want neither", name, len(m.byUID))
		}
	}
	m := New(Options{KubernetesVersion: "v1.34.4"})
	last := &server.PodView{Pod: named("web-n1", v1.PodPending)}
	m.UpdatePod(nil, last, now.Time)
	if m.DeletePod(last, now.Time); len(m.byUID) > 0 {
		t.Error("after the pod was deleted: got a tracked pod, want none")
	}
}

// TestStarts_ClockSetBack checks that, if the clock is set back, durations are not negative.
func TestStarts_ClockSetBack(t *testing.T) {
	m := New(Options{KubernetesVersion: "v1.34.4"})
	before := &server.PodView{Pod: named("web-n1", v1.PodPending)}
	after := &server.PodView{Pod: named("web-n1", v1.PodRunning, v1.ContainerStatus{Name: "main", ContainerID: "containerd://1"})}
	start := metav1.Unix(5000, 0)
	after.Pod.Status.StartTime = &start
	m.UpdatePod(nil, before, start.Time)
	m.RecordFirstAction("uid-web-n1", start.Time)
	m.UpdatePod(before, after, start.Add(-time.Hour))
	text := scrape(m.Handler(Inputs{State: server.NewLatestView(view())}), "/metrics")
	for _, want := range []string{"duration_seconds_sum 0", "total_duration_seconds_sum 0", "sli_duration_seconds_sum 0"} {
		if !strings.Contains(text, "kubelet_pod_start_"+want+"\n") {
			t.Errorf("missing kubelet_pod_start_%s", want)
		}
	}
}

// TestStarts_FirstNetworkPod checks that the metric of the first pod with a network of its own ignores
// pods that use the network of the host, and later pods.
func TestStarts_FirstNetworkPod(t *testing.T) {
	m := New(Options{KubernetesVersion: "v1.34.4"})
	for i, hostNetwork := range []bool{true, false, false} {
		before := &server.PodView{Pod: named("web-n1", v1.PodPending)}
		after := &server.PodView{Pod: named("web-n1", v1.PodRunning, v1.ContainerStatus{Name: "main", ContainerID: "containerd://1"})}
		for _, p := range []*v1.Pod{before.Pod, after.Pod} {
			p.UID, p.Spec.HostNetwork = types.UID(strconv.Itoa(i)), hostNetwork
		}
		at := time.Unix(5000, 0)
		m.UpdatePod(nil, before, at)
		m.RecordFirstAction(before.Pod.UID, at)
		m.UpdatePod(before, after, at.Add(time.Duration(i+1)*time.Second))
	}
	text := scrape(m.Handler(Inputs{State: server.NewLatestView(view())}), "/metrics")
	if want := "kubelet_first_network_pod_start_sli_duration_seconds 2\n"; !strings.Contains(text, want) {
		t.Errorf("missing %s", want)
	}
}
