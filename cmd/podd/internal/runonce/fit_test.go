package runonce

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/admission"
)

// TestFindMisfits checks which pods findMisfits rejects before a run starts. The node has 2 CPUs, and room
// for 3 pods. "Services" are long-running pods.
func TestFindMisfits(t *testing.T) {
	podWithRequest := func(name string, policy v1.RestartPolicy, cpu string, change ...func(*v1.PodSpec)) *manifest.Pod {
		p := decodePods(t, podManifest(name, policy, "c"))[0]
		p.Object.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
		for _, c := range change {
			c(&p.Object.Spec)
		}
		return p
	}
	forOtherNode := func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"disk": "ssd"} }
	withDevice := func(s *v1.PodSpec) {
		s.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	}
	tests := []struct {
		name string
		pods []*manifest.Pod
		want []string // a part of each problem
	}{
		{"the pods fit one after the other", []*manifest.Pod{podWithRequest("a", never, "2"), podWithRequest("b", never, "2"), podWithRequest("c", onFailure, "2")}, nil},
		{"a pod exceeds the node", []*manifest.Pod{podWithRequest("a", never, "1"), podWithRequest("big", never, "3")}, []string{
			"ci/test.yaml:4:1: error: pod big cannot run on this node: the pod requests 3 of cpu; the node has 2 for pods, of which other pods request 0",
		}},
		{"a pod does not fit in addition to the services", []*manifest.Pod{podWithRequest("s3", always, "500m"), podWithRequest("a", never, "2"), podWithRequest("b", never, "1500m")}, []string{
			"pod a cannot run on this node: the pod requests 2 of cpu; the node has 2 for pods, of which other pods request 500m",
		}},
		{"the services do not fit together", []*manifest.Pod{podWithRequest("s1", always, "1500m"), podWithRequest("s2", always, "1"), podWithRequest("a", never, "500m")}, []string{"pod s2 cannot run"}},
		{"too many services", []*manifest.Pod{podWithRequest("s1", always, "1m"), podWithRequest("s2", always, "1m"), podWithRequest("s3", always, "1m"), podWithRequest("a", never, "1m")}, []string{"pod a cannot run on this node: the node is full: 3 of 3 pods"}},
		{"another node", []*manifest.Pod{podWithRequest("a", never, "1", forOtherNode)}, []string{"pod a cannot run"}},
		{"the number of devices is not known yet", []*manifest.Pod{podWithRequest("a", never, "1", withDevice)}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}}
			var order []types.NamespacedName
			for _, p := range test.pods {
				set.Pods[p.Key] = p
				order = append(order, p.Key)
			}
			limits := admission.Limits{MaxPods: 3, Allocatable: admission.Amounts{v1.ResourceCPU: 2000}}
			got := findMisfits(set, order, limits)
			if len(got) != len(test.want) {
				t.Fatalf("got problems %v, want %d", got, len(test.want))
			}
			for i, want := range test.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("got problem %q, want it to contain %q", got[i], want)
				}
			}
		})
	}
}
