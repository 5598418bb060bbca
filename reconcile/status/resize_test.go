package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
	"podd/runtime"
)

// TestResize checks the allocated and the actual resources, and the conditions while
// they differ.
func TestResize(t *testing.T) {
	spec := v1.Container{Name: "app", Image: "a:1", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")},
	}}
	p := &manifest.Pod{UID: "u", Hash: "v1:0", Object: &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{spec}}}}
	p.ContainerHashes = map[string]manifest.ContainerHash{"app": {Resources: manifest.FormatSize(spec.Resources)}}
	small := p.WithSizes(map[string]string{"app": "cpu=/ memory=32Mi/32Mi"})
	for name, tt := range map[string]struct {
		resize            Resize
		allocated, actual *manifest.Pod
		requests, limits  string
		conditions        string
	}{
		"none":        {Resize{}, nil, nil, "64Mi", "64Mi", ""},
		"pending":     {Resize{PendingReason: Reason{"Deferred", "no room"}}, small, small, "32Mi", "32Mi", "PodResizePending Deferred no room;"},
		"in progress": {Resize{InProgress: true}, p, small, "64Mi", "32Mi", "PodResizeInProgress  ;"},
		"failed":      {Resize{InProgress: true, FailureMessage: "busy"}, p, small, "64Mi", "32Mi", "PodResizeInProgress Error busy;"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Compute(Facts{
				Pod: p, Allocated: tt.allocated, Actual: tt.actual, Resize: tt.resize, Now: time.Now(),
				Observed: []runtime.Incarnation{{
					Sandbox:    runtime.Sandbox{ID: "s", UID: "u", Ready: true, Annotations: map[string]string{runtime.AnnotationPodHash: "v1:0"}},
					Containers: []runtime.Container{{ID: "c", Name: "app", State: runtime.Running}},
				}},
			})
			c := s.ContainerStatuses[0]
			if got := c.AllocatedResources.Memory().String(); got != tt.requests {
				t.Errorf("allocated memory: got %s, want %s", got, tt.requests)
			}
			if got := c.Resources.Limits.Memory().String(); got != tt.limits {
				t.Errorf("memory limit: got %s, want %s", got, tt.limits)
			}
			got := ""
			for _, c := range s.Conditions {
				if c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress {
					got += string(c.Type) + " " + c.Reason + " " + c.Message + ";"
				}
			}
			if got != tt.conditions {
				t.Errorf("conditions: got %q, want %q", got, tt.conditions)
			}
		})
	}
}
