package metrics

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// TestHandler_StaticLabel checks that pods of an API server are not counted as static pods.
func TestHandler_StaticLabel(t *testing.T) {
	m, in := exercised(), inputs()
	ofAPI := named("api", v1.PodRunning)
	m.o.IsStatic = func(p *v1.Pod) bool { return p.Name != ofAPI.Name }
	v := *view()
	v.Pods = append(v.Pods, &server.PodView{Pod: ofAPI, Rule: "Run"})
	in.State = server.NewLatestView(&v)
	got := scrape(m.Handler(in), "/metrics")
	for _, want := range []string{
		`kubelet_desired_pods{static=""} 1`, `kubelet_desired_pods{static="true"} 2`,
		`kubelet_active_pods{static=""} 1`, `kubelet_active_pods{static="true"} 2`,
		`kubelet_working_pods{config="desired",lifecycle="sync",static=""} 1`, `kubelet_working_pods{config="desired",lifecycle="sync",static="true"} 2`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
}

// TestHandler_DeletedPods checks where pods that are being deleted are counted. A pod that is being deleted
// in the API server is still desired, a pod without its file is orphaned, and podd never had a manifest of
// a pod that it found only in the runtime.
func TestHandler_DeletedPods(t *testing.T) {
	m, in := exercised(), inputs()
	m.o.IsStatic = func(p *v1.Pod) bool { return p.Name != "api" }
	deleted := func(p *v1.Pod) *v1.Pod {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(4000, 0)}
		return p
	}
	inRuntime := deleted(named("found", v1.PodRunning))
	inRuntime.Spec = v1.PodSpec{}
	in.State = server.NewLatestView(&server.View{Pods: []*server.PodView{
		{Pod: deleted(named("api", v1.PodRunning)), Path: server.ClusterSource, SandboxID: "s1"},
		{Pod: deleted(named("file", v1.PodRunning)), SandboxID: "s2"},
		{Pod: inRuntime, SandboxID: "s3"},
	}})
	got := scrape(m.Handler(in), "/metrics")
	for _, want := range []string{
		`kubelet_desired_pods{static=""} 1`, `kubelet_desired_pods{static="true"} 0`,
		`kubelet_active_pods{static=""} 1`, `kubelet_active_pods{static="true"} 0`,
		`kubelet_working_pods{config="desired",lifecycle="terminating",static=""} 1`,
		`kubelet_working_pods{config="desired",lifecycle="terminating",static="true"} 0`,
		`kubelet_working_pods{config="orphan",lifecycle="terminating",static=""} 0`,
		`kubelet_working_pods{config="orphan",lifecycle="terminating",static="true"} 1`,
		`kubelet_working_pods{config="runtime_only",lifecycle="terminating",static="unknown"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
}
