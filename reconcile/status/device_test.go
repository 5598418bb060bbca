package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/reconcile/device/allocation"
	"podd/runtime"
)

// TestDeviceHealth checks the health of a container's devices, and that an invalid annotation and a
// container that is not a regular container have none.
func TestDeviceHealth(t *testing.T) {
	const devices = `{"example.com/gpu":["a","b"],"example.com/fpga":["c"]}`
	facts := &Facts{UnhealthyDevices: &allocation.UnhealthyDevices{"example.com/gpu": {"b", "x"}, "example.com/nic": {"c"}}}
	for name, test := range map[string]struct {
		role       role
		annotation string
		want       []v1.ResourceStatus
	}{
		"devices": {regularRole, devices, []v1.ResourceStatus{
			{Name: "example.com/fpga", Resources: []v1.ResourceHealth{{ResourceID: "c", Health: v1.ResourceHealthStatusHealthy}}},
			{Name: "example.com/gpu", Resources: []v1.ResourceHealth{{ResourceID: "a", Health: v1.ResourceHealthStatusHealthy}, {ResourceID: "b", Health: v1.ResourceHealthStatusUnhealthy}}},
		}},
		"init container":     {initRole, devices, nil},
		"no annotation":      {regularRole, "", nil},
		"invalid annotation": {regularRole, "{", nil},
	} {
		c := observedContainer{observedPod: &observedPod{f: facts}, role: test.role}
		c.record = &runtime.Container{Annotations: map[string]string{runtime.AnnotationDevices: test.annotation}}
		if diff := cmp.Diff(test.want, c.deviceHealth()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDeviceHealth_NotCreated checks that a container that is not created yet has the devices that
// were allocated to it in the newest sandbox, not those of its container in an earlier sandbox.
func TestDeviceHealth_NotCreated(t *testing.T) {
	sandbox := &runtime.Incarnation{Sandbox: runtime.Sandbox{ID: "s2", Annotations: map[string]string{runtime.AnnotationPodDevices: `{"main":{"example.com/gpu":["new"]}}`}}}
	created := func(sandbox string) *runtime.Container {
		return &runtime.Container{SandboxID: sandbox, Annotations: map[string]string{runtime.AnnotationDevices: `{"example.com/gpu":["own"]}`}}
	}
	for name, test := range map[string]struct {
		container string
		sandbox   *runtime.Incarnation
		last      *runtime.Container
		want      v1.ResourceID
	}{
		"not created":                     {"main", sandbox, nil, "new"},
		"created":                         {"main", sandbox, created("s2"), "own"},
		"created in an earlier sandbox":   {"main", sandbox, created("s1"), "new"},
		"sandbox without this container":  {"other", sandbox, created("s1"), "own"},
		"no device":                       {"other", sandbox, nil, ""},
		"no sandbox":                      {"main", nil, nil, ""},
		"container of a removed sandbox":  {"main", nil, created("s1"), "own"},
		"sandbox of an older podd":        {"main", &runtime.Incarnation{}, nil, ""},
		"invalid annotation of a sandbox": {"main", &runtime.Incarnation{Sandbox: runtime.Sandbox{Annotations: map[string]string{runtime.AnnotationPodDevices: "{"}}}, nil, ""},
	} {
		c := observedContainer{observedPod: &observedPod{f: &Facts{}, sandbox: test.sandbox}, spec: &v1.Container{Name: test.container}, role: regularRole, record: test.last}
		var got v1.ResourceID
		if all := c.deviceHealth(); len(all) > 0 {
			got = all[0].Resources[0].ResourceID
		}
		if got != test.want {
			t.Errorf("%s: got device %q, want %q", name, got, test.want)
		}
	}
}
