package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/server"
)

// TestRequestedResizes checks that each change of the CPU or memory of a container is counted once,
// with its operation. Another pod of the same name must not count as a resize.
func TestRequestedResizes(t *testing.T) {
	amounts := func(cpu, memory string) v1.ResourceList {
		l := v1.ResourceList{}
		if cpu != "" {
			l[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	pod := func(requests, limits v1.ResourceList) *v1.Pod {
		p := named("web-n1", v1.PodRunning)
		p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: requests, Limits: limits}
		return p
	}
	init := pod(nil, nil)
	init.Spec.InitContainers = []v1.Container{{Name: "side", Resources: v1.ResourceRequirements{Limits: amounts("1", "")}}}
	initAfter := init.DeepCopy()
	initAfter.Spec.InitContainers[0].Resources.Limits = amounts("2", "")
	other := pod(amounts("2", ""), nil)
	other.UID = "other"
	for _, test := range []struct {
		name          string
		before, after *v1.Pod
		want          map[string]float64 // by resource, requirement and operation
	}{
		{"same", pod(amounts("1", "1Gi"), nil), pod(amounts("1000m", "1024Mi"), nil), nil},
		{"increase and decrease", pod(amounts("1", "1Gi"), nil), pod(amounts("2", "512Mi"), nil), map[string]float64{"cpu requests increase": 1, "memory requests decrease": 1}},
		{"add and remove", pod(amounts("1", ""), nil), pod(nil, amounts("", "1Gi")), map[string]float64{"cpu requests remove": 1, "memory limits add": 1}},
		{"sidecar", init, initAfter, map[string]float64{"cpu limits increase": 1}},
		{"another pod", pod(amounts("1", ""), nil), other, nil},
	} {
		c := newResizeCounts()
		before, after := &server.PodView{Pod: test.before}, &server.PodView{Pod: test.after}
		c.update(nil, before, time.Unix(1, 0))
		c.update(before, after, time.Unix(2, 0))
		c.update(after, after, time.Unix(3, 0))
		r := prometheus.NewRegistry()
		r.MustRegister(c.requestedResizes)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]float64
		for _, f := range families {
			got = map[string]float64{}
			for _, m := range f.Metric { // labels are sorted by name: operation, requirement, resource
				got[m.Label[2].GetValue()+" "+m.Label[1].GetValue()+" "+m.Label[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
}
