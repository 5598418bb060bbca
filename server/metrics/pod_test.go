package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// A history records versions of one pod.
type history struct {
	*Metrics
	last *server.PodView
}

func newHistory() *history {
	return &history{Metrics: New(Options{KubernetesVersion: "v1.37.2", AdmittedPhases: []string{"prepare", "run"}})}
}

// record copies the last version of the pod, calls change with the copy, and records the copy as the
// version at the time in the parameter at, in Unix seconds.
func (h *history) record(at int64, change func(*server.PodView)) {
	next := &server.PodView{Pod: named("web-n1", v1.PodRunning)}
	if h.last != nil {
		next = &server.PodView{Pod: h.last.Pod.DeepCopy(), Phase: h.last.Phase}
	}
	change(next)
	h.UpdatePod(h.last, next, time.Unix(at, 0))
	h.last = next
}

// check checks that the series in /metrics that start with prefix are exactly those in want.
func (h *history) check(t *testing.T, prefix string, want ...string) {
	t.Helper()
	got := map[string]bool{}
	for line := range strings.Lines(scrape(h.Handler(Inputs{State: server.NewLatestView(&server.View{Node: "n1"})}), "/metrics")) {
		if strings.HasPrefix(line, prefix) && !strings.Contains(line, "_bucket{") {
			got[strings.TrimSpace(line)] = true
		}
	}
	for _, line := range want {
		if !got[line] {
			t.Errorf("got no series %s, want one", line)
		}
		delete(got, line)
	}
	for line := range got {
		t.Errorf("got series %s, want none", line)
	}
}

// TestTerminatedContainers checks that each termination is counted once, even if podd published
// only the restart of the container.
func TestTerminatedContainers(t *testing.T) {
	terminated := func(id string, code int32, reason string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: id, ExitCode: code, Reason: reason, FinishedAt: metav1.Unix(int64(code), 0)}}
	}
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	status := func(state, last v1.ContainerState) func(*server.PodView) {
		return func(p *server.PodView) {
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", State: state, LastTerminationState: last}}
		}
	}
	h := newHistory()
	h.record(1, status(running, terminated("c0", 9, "Error"))) // before podd started
	h.record(2, status(terminated("c1", 1, "Error"), terminated("c0", 9, "Error")))
	h.record(3, status(v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}, terminated("c1", 1, "Error")))
	h.record(4, status(running, terminated("c2", 137, "OOMKilled"))) // the termination itself was not published
	h.record(5, func(p *server.PodView) {
		p.Pod.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "init", State: terminated("c3", 0, "Completed")}}
	})
	h.record(6, func(p *server.PodView) {
		p.Pod.Status.InitContainerStatuses[0].State = terminated("c4", 0, "Completed")
	})
	h.record(7, func(p *server.PodView) { // another pod of the same name
		p.Pod.UID = "next"
		p.Pod.Status.ContainerStatuses[0].State = terminated("c5", 3, "Error")
	})
	h.check(t, "kubelet_terminated_containers_total",
		`kubelet_terminated_containers_total{container_type="container",exit_code="1",reason="Error"} 1`,
		`kubelet_terminated_containers_total{container_type="container",exit_code="137",reason="OOMKilled"} 1`,
		`kubelet_terminated_containers_total{container_type="init_container",exit_code="0",reason="Completed"} 1`)
}

// TestRecordSandbox checks which metrics count an attempt to create a sandbox.
func TestRecordSandbox(t *testing.T) {
	failure := errors.New("failed")
	for name, test := range map[string]struct {
		attempt                                   Sandbox
		wantErrors, wantCallErrors, wantDurations string
	}{
		"created":                     {Sandbox{Call: &Call{Duration: time.Second}}, "0", "", "1"},
		"call failed":                 {Sandbox{Err: failure, Call: &Call{time.Second, failure}}, "1", "1", "1"},
		"query after the call failed": {Sandbox{Err: failure, Call: &Call{Duration: time.Second}}, "0", "", "1"},
		"no cgroup":                   {Sandbox{Err: failure}, "1", "", ""},
		"pod deleted during the call": {Sandbox{Err: failure, Canceled: true, Call: &Call{time.Second, failure}}, "0", "1", "1"},
		"pod deleted before the call": {Sandbox{Err: failure, Canceled: true}, "0", "", ""},
	} {
		m := New(Options{KubernetesVersion: "v1.37.2"})
		test.attempt.Handler = "vm"
		m.RecordSandbox(test.attempt)
		text := scrape(m.Handler(inputs()), "/metrics")
		for metric, want := range map[string]string{
			"kubelet_started_pods_total": "1", "kubelet_started_pods_errors_total": test.wantErrors,
			`kubelet_run_podsandbox_errors_total{runtime_handler="vm"}`:           test.wantCallErrors,
			`kubelet_run_podsandbox_duration_seconds_count{runtime_handler="vm"}`: test.wantDurations,
		} {
			_, after, _ := strings.Cut(text, "\n"+metric+" ")
			if got, _, _ := strings.Cut(after, "\n"); got != want {
				t.Errorf("%s: got %s %q, want %q", name, metric, got, want)
			}
		}
	}
}

// TestAdmissions checks that a pod is counted once when it is admitted. If an edit replaces the pod,
// the new pod is counted as well.
func TestAdmissions(t *testing.T) {
	amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}
	replace := func(uid types.UID, class v1.PodQOSClass, change func(*v1.PodSpec)) func(*server.PodView) {
		return func(p *server.PodView) {
			p.Pod.UID, p.Pod.Status.QOSClass, p.Phase = uid, class, "prepare"
			change(&p.Pod.Spec)
		}
	}
	h := newHistory()
	h.record(1, replace("1", v1.PodQOSBestEffort, func(*v1.PodSpec) {}))
	h.record(2, func(p *server.PodView) { p.Phase = "run" })
	h.record(3, func(p *server.PodView) { p.Phase = "wait" })
	h.record(4, func(p *server.PodView) { p.Phase = "run" })
	h.record(5, replace("2", v1.PodQOSBurstable, func(s *v1.PodSpec) { s.Containers[0].Resources.Requests = amounts }))
	h.record(6, replace("3", v1.PodQOSBurstable, func(s *v1.PodSpec) { s.Resources = &v1.ResourceRequirements{Requests: amounts} }))
	h.record(7, replace("4", v1.PodQOSBurstable, func(s *v1.PodSpec) { s.Containers[0].Resources = v1.ResourceRequirements{} }))
	h.record(8, func(p *server.PodView) { p.Pod.UID, p.Phase = "5", "wait" }) // not admitted
	h.check(t, "kubelet_pod_level_resources_admission_total",
		`kubelet_pod_level_resources_admission_total{config_mode="",qos_class="besteffort"} 1`,
		`kubelet_pod_level_resources_admission_total{config_mode="container_level",qos_class="burstable"} 1`,
		`kubelet_pod_level_resources_admission_total{config_mode="pod_and_container_level",qos_class="burstable"} 1`,
		`kubelet_pod_level_resources_admission_total{config_mode="pod_level",qos_class="burstable"} 1`)
	h.DeletePod(h.last, time.Unix(9, 0))
	h.DeletePod(&server.PodView{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "4"}}}, time.Unix(9, 0))
	if len(h.counted.uids) > 0 {
		t.Errorf("after the pods were deleted: got %v, want no tracked pods", h.counted.uids)
	}
}

// TestDeferredResize checks how long a resize was deferred, and how the deferral ended.
func TestDeferredResize(t *testing.T) {
	pending := func(p *server.PodView, reason string) {
		p.Pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Unix(100, 0)}}
	}
	resize := func(cpu string) func(*server.PodView) {
		return func(p *server.PodView) {
			p.Pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
		}
	}
	tests := map[string]struct {
		reason, want string
		end          func(*server.PodView)
	}{
		"in progress": {v1.PodReasonDeferred, "accepted", func(p *server.PodView) { p.Pod.Status.Conditions[0].Type = v1.PodResizeInProgress }},
		"carried out": {v1.PodReasonDeferred, "accepted", func(p *server.PodView) { p.Pod.Status.Conditions = nil }},
		"another size that is admitted": {v1.PodReasonDeferred, "accepted", func(p *server.PodView) {
			resize("3")(p)
			p.Pod.Status.Conditions[0].Type = v1.PodResizeInProgress
		}},
		"earlier size": {v1.PodReasonDeferred, "reverted", func(p *server.PodView) {
			resize("1")(p)
			p.Pod.Status.Conditions = nil
		}},
		"finished": {v1.PodReasonDeferred, "terminated", func(p *server.PodView) { p.Pod.Status.Conditions, p.Pod.Status.Phase = nil, v1.PodFailed }},
		"deleted": {v1.PodReasonDeferred, "terminated", func(p *server.PodView) {
			p.Pod.Status.Conditions, p.Pod.DeletionTimestamp = nil, new(metav1.Unix(160, 0))
		}},
		"still deferred":    {v1.PodReasonDeferred, "", func(p *server.PodView) { pending(p, v1.PodReasonDeferred) }},
		"never fits":        {v1.PodReasonDeferred, "", func(p *server.PodView) { pending(p, v1.PodReasonInfeasible) }},
		"infeasible before": {v1.PodReasonInfeasible, "", func(p *server.PodView) { p.Pod.Status.Conditions = nil }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.record(1, resize("1"))
			h.record(2, func(p *server.PodView) {
				resize("2")(p)
				pending(p, test.reason)
			})
			h.record(160, test.end)
			if test.want == "" {
				h.check(t, "kubelet_pod_deferred_resize_duration_seconds")
				return
			}
			labels := `{priority_bucket="normal",resolution="` + test.want + `"} `
			h.check(t, "kubelet_pod_deferred_resize_duration_seconds",
				"kubelet_pod_deferred_resize_duration_seconds_sum"+labels+"60", "kubelet_pod_deferred_resize_duration_seconds_count"+labels+"1")
		})
	}
	t.Run("removed", func(t *testing.T) {
		h := newHistory()
		h.record(1, func(p *server.PodView) { pending(p, v1.PodReasonDeferred) })
		h.DeletePod(h.last, time.Unix(130, 0))
		const labels = `{priority_bucket="normal",resolution="terminated"} `
		h.check(t, "kubelet_pod_deferred_resize_duration_seconds",
			"kubelet_pod_deferred_resize_duration_seconds_sum"+labels+"30", "kubelet_pod_deferred_resize_duration_seconds_count"+labels+"1")
	})
}

func TestPriorityLabel(t *testing.T) {
	for priority, want := range map[int32]string{
		2_000_000_000: "system-critical", 1_999_999_999: "high", 100_000: "high", 99_999: "medium", 1: "medium",
		0: "normal", -1: "low", -999: "low", -1000: "very-low",
	} {
		if got := priorityLabel(&v1.Pod{Spec: v1.PodSpec{Priority: &priority}}); got != want {
			t.Errorf("priority %d: got %s, want %s", priority, got, want)
		}
	}
	if got := priorityLabel(&v1.Pod{}); got != "normal" {
		t.Errorf("no priority: got %s, want normal", got)
	}
}

// TestPodCounts_RejectedUnderPressure checks that a pod that is not admitted under node pressure does
// not count as evicted, although its status has the same reason.
func TestPodCounts_RejectedUnderPressure(t *testing.T) {
	c := newPodCounts()
	c.update(&server.PodView{Pod: &v1.Pod{}}, &server.PodView{Pod: &v1.Pod{Status: v1.PodStatus{Phase: v1.PodFailed, Reason: evicted}}})
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.evictions)
	if families, err := registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("got %v, error %v; want no evictions", families, err)
	}
}

// TestPodCounts_Evictions checks that an eviction and a preemption are counted once, with the signal.
func TestPodCounts_Evictions(t *testing.T) {
	for _, test := range []struct {
		reason    string
		after     server.PodView
		wantName  string
		wantLabel string
	}{
		{evicted, server.PodView{EvictionSignal: "memory.available"}, "kubelet_evictions", "memory.available"},
		{evicted, server.PodView{EvictionSignal: "emptydirfs.limit"}, "kubelet_evictions", "emptydirfs.limit"},
		{preempted, server.PodView{PreemptionSignal: "cpu"}, "kubelet_preemptions", "cpu"},
		{preempted, server.PodView{}, "kubelet_preemptions", ""},
	} {
		c := newPodCounts()
		before, after := &server.PodView{Pod: &v1.Pod{}}, test.after
		after.Pod = &v1.Pod{Status: v1.PodStatus{Reason: test.reason}}
		c.update(before, &after)
		c.update(&after, &after)
		registry := prometheus.NewRegistry()
		registry.MustRegister(c.evictions, c.preemptions)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || len(families[0].Metric) != 1 {
			t.Fatalf("%s: got %v, error %v; want one metric", test.reason, families, err)
		}
		m := families[0].Metric[0]
		if name, label, n := families[0].GetName(), m.Label[0].GetValue(), m.GetCounter().GetValue(); name != test.wantName || label != test.wantLabel || n != 1 {
			t.Errorf("got %v of %s with the label %q, want 1 of %s with %q", n, name, label, test.wantName, test.wantLabel)
		}
	}
}
