package metrics

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

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
