package admission

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/device/allocation"
	"podd/reconcile/plan"
)

const gpu = "example.com/gpu"

// needing returns a pod that requests n devices.
func needing(t *testing.T, name string, n int64) *manifest.Pod {
	t.Helper()
	p := asking(t, name, "1m", "1Mi")
	p.Object.Spec.Containers[0].Resources.Requests[gpu] = *resource.NewQuantity(n, resource.DecimalSI)
	return p
}

// TestDevices checks the admission of pod b on a node that also has pod a. Both pods may request or
// hold devices.
func TestDevices(t *testing.T) {
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	one, two, none := needing(t, "one", 1), needing(t, "two", 2), needing(t, "none", 0)
	claim := func(key types.NamespacedName, wants *manifest.Pod, holds ...*manifest.Pod) candidate {
		return candidate{Key: key, Desired: wants, ReservedVersions: holds, Active: len(holds) > 0, UIDs: []types.UID{types.UID(key.Name)}}
	}
	of := func(n int64, served bool) map[v1.ResourceName]allocation.Count {
		return map[v1.ResourceName]allocation.Count{gpu: {Total: n, IsServed: served}}
	}
	const unserved = "the pod requests 1 of example.com/gpu, which no device plugin provides now; the pod starts when such a plugin registers"
	tests := map[string]struct {
		other, asks candidate
		devices     map[v1.ResourceName]allocation.Count
		want        plan.Verdict
	}{
		"enough":           {claim(a, one, one), claim(b, one), of(2, true), plan.Verdict{}},
		"too few":          {claim(a, one, one), claim(b, two), of(2, true), plan.Verdict{Answer: plan.Reject, Reason: noDevicesReason, Message: "the pod requests 2 of example.com/gpu; the node has 2 for pods, of which other pods request 1", BlockedByPods: true}},
		"exceeds the node": {claim(a, none), claim(b, two), of(1, true), plan.Verdict{Answer: plan.Reject, Reason: noDevicesReason, Message: "the pod requests 2 of example.com/gpu; the node has 1 for pods, of which other pods request 0", NeverFits: true}},
		"the pod that uses them is being deleted":      {claim(a, nil, two), claim(b, one), of(2, true), plan.Verdict{Answer: plan.Wait, Reason: noDevicesReason, Message: "the pod requests 1 of example.com/gpu; the node has 2 for pods, of which other pods request 2, which are being stopped", BlockedByPods: true}},
		"the first of two":                             {claim(a, one), claim(b, one), of(1, true), plan.Verdict{Answer: plan.Reject, Reason: noDevicesReason, Message: "the pod requests 1 of example.com/gpu; the node has 1 for pods, of which other pods request 1", BlockedByPods: true}},
		"plugin not registered yet":                    {claim(a, none), claim(b, one), of(0, false), plan.Verdict{Answer: plan.Wait, Reason: noDevicesReason, Message: unserved}},
		"plugin never registered":                      {claim(a, none), claim(b, one), map[v1.ResourceName]allocation.Count{}, plan.Verdict{Answer: plan.Wait, Reason: noDevicesReason, Message: unserved}},
		"running, and the plugin exited":               {claim(a, none), claim(b, one, one), of(1, false), plan.Verdict{}},
		"edit requests more, and the plugin exited":    {claim(a, none), claim(b, two, one), of(1, false), plan.Verdict{Answer: plan.Reject, Reason: noDevicesReason, Message: "the pod requests 2 of example.com/gpu, which no device plugin provides now; the pod starts when such a plugin registers"}},
		"edit requests as many, and the plugin exited": {claim(a, none), claim(b, one, needing(t, "was", 1)), of(1, false), plan.Verdict{Answer: plan.Reject, Reason: noDevicesReason, Message: unserved}},
		"requests none":                                {claim(a, none), claim(b, none), nil, plan.Verdict{}},
		"edit requests as many":                        {claim(a, none), claim(b, one, needing(t, "was", 1)), of(1, true), plan.Verdict{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := admitAll([]candidate{tt.other, tt.asks}, Limits{Devices: tt.devices})[b]
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestDevices_Unknown checks that a pod is admitted without a check of its devices while the devices
// of the node are unknown.
func TestDevices_Unknown(t *testing.T) {
	a := types.NamespacedName{Name: "a"}
	for _, devices := range []map[v1.ResourceName]allocation.Count{nil, {}} {
		limits := Limits{Allocatable: Amounts{v1.ResourceCPU: 1000}, Devices: devices, DevicesUnknown: true}
		if got := admitAll([]candidate{{Key: a, Desired: needing(t, "one", 1)}}, limits)[a]; got != (plan.Verdict{}) {
			t.Errorf("got %+v, want Admit", got)
		}
	}
}

// TestDevices_AwaitsPlugins checks that a pod of a cluster that requests a resource without a device
// plugin waits while AwaitsPlugins is set. Otherwise it is admitted.
func TestDevices_AwaitsPlugins(t *testing.T) {
	pod := candidate{Key: named("a"), Desired: clusterPod("a", 0, requesting(gpu, "1"))}
	for _, awaits := range []bool{true, false} {
		got := admitAll([]candidate{pod}, Limits{AwaitsPlugins: awaits})[named("a")]
		if (got.Answer == plan.Wait) != awaits || got.Answer == plan.Reject {
			t.Errorf("AwaitsPlugins %t: got %+v, want Wait if AwaitsPlugins is true, else Admit", awaits, got)
		}
	}
}
