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
		c.last = &runtime.Container{Annotations: map[string]string{runtime.AnnotationDevices: test.annotation}}
		if diff := cmp.Diff(test.want, c.deviceHealth()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
