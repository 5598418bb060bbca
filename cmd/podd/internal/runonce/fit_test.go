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

// TestFindPortConflicts checks that two pods that run to completion can have the same host port, because
// one waits for the other, but not a service and another pod.
func TestFindPortConflicts(t *testing.T) {
	onPort := func(name string, policy v1.RestartPolicy) *manifest.Pod {
		p := decodePods(t, podManifest(name, policy, "c"))[0]
		p.Object.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080, Protocol: v1.ProtocolTCP}}
		return p
	}
	for name, c := range map[string]struct {
		pods []*manifest.Pod
		want string // the pod with the problem
	}{
		"two jobs":          {[]*manifest.Pod{onPort("a", never), onPort("b", onFailure)}, ""},
		"service and job":   {[]*manifest.Pod{onPort("a", always), onPort("b", never)}, "b-run1"},
		"job and service":   {[]*manifest.Pod{onPort("a", never), onPort("b", always)}, "b-run1"},
		"two services":      {[]*manifest.Pod{onPort("a", always), onPort("b", always)}, "b-run1"},
		"one of three jobs": {[]*manifest.Pod{onPort("a", never), onPort("b", never), onPort("c", always)}, "c-run1"},
	} {
		got := ""
		for _, p := range findPortConflicts(c.pods) {
			got += p.Pod.Name
		}
		if got != c.want {
			t.Errorf("%s: got problems of %q, want %q", name, got, c.want)
		}
	}
}

// TestFindMisfits checks which pods of a run are rejected before the run starts.
func TestFindMisfits(t *testing.T) {
	requesting := func(name string, policy v1.RestartPolicy, cpu string, change ...func(*v1.PodSpec)) *manifest.Pod {
		p := decodePods(t, podManifest(name, policy, "c"))[0]
		p.Object.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
		for _, c := range change {
			c(&p.Object.Spec)
		}
		return p
	}
	elsewhere := func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"disk": "ssd"} }
	withDevice := func(s *v1.PodSpec) {
		s.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
	}
	tests := []struct {
		name string
		pods []*manifest.Pod
		want []string // a part of each problem
	}{
		{"the pods fit one after the other", []*manifest.Pod{requesting("a", never, "2"), requesting("b", never, "2"), requesting("c", onFailure, "2")}, nil},
		{"a pod exceeds the node", []*manifest.Pod{requesting("a", never, "1"), requesting("big", never, "3")}, []string{
			"ci/test.yaml:4:1: error: pod big cannot run on this node: the pod requests 3 of cpu; the node has 2 for pods, of which other pods request 0",
		}},
		{"a pod does not fit in addition to the services", []*manifest.Pod{requesting("s3", always, "500m"), requesting("a", never, "2"), requesting("b", never, "1500m")}, []string{
			"pod a cannot run on this node: the pod requests 2 of cpu; the node has 2 for pods, of which other pods request 500m",
		}},
		{"the services do not fit together", []*manifest.Pod{requesting("s1", always, "1500m"), requesting("s2", always, "1"), requesting("a", never, "500m")}, []string{"pod s2 cannot run"}},
		{"too many services", []*manifest.Pod{requesting("s1", always, "1m"), requesting("s2", always, "1m"), requesting("s3", always, "1m"), requesting("a", never, "1m")}, []string{"pod a cannot run on this node: the node is full: 3 of 3 pods"}},
		{"another node", []*manifest.Pod{requesting("a", never, "1", elsewhere)}, []string{"pod a cannot run"}},
		{"the number of devices is not known yet", []*manifest.Pod{requesting("a", never, "1", withDevice)}, nil},
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
				t.Fatalf("got %v, want %d problems", got, len(test.want))
			}
			for i, want := range test.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("got %q, want %q in it", got[i], want)
				}
			}
		})
	}
}
