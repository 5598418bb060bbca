package plan

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

const gpu = "example.com/gpu"

// needing is a pod that asks for so many devices.
func needing(t *testing.T, name string, n int64) *manifest.Pod {
	t.Helper()
	p := asking(t, name, "1m", "1Mi")
	p.Spec.Spec.Containers[0].Resources.Requests[gpu] = *resource.NewQuantity(n, resource.DecimalSI)
	return p
}

func TestDevices(t *testing.T) {
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	one, two, none := needing(t, "one", 1), needing(t, "two", 2), needing(t, "none", 0)
	claim := func(key types.NamespacedName, wants *manifest.Pod, holds ...*manifest.Pod) Claimant {
		return Claimant{Key: key, Wants: wants, Holds: holds, Present: len(holds) > 0, UIDs: []types.UID{types.UID(key.Name)}}
	}
	of := func(n int64, served bool) map[v1.ResourceName]Devices {
		return map[v1.ResourceName]Devices{gpu: {Total: n, Served: served}}
	}
	const unserved = "it asks for 1 of example.com/gpu, which no device plugin serves now; it starts when one registers"
	tests := map[string]struct {
		other, asks Claimant
		devices     map[v1.ResourceName]Devices
		want        Verdict
	}{
		"enough":                    {claim(a, one, one), claim(b, one), of(2, true), Verdict{}},
		"too few":                   {claim(a, one, one), claim(b, two), of(2, true), Verdict{Answer: Reject, Reason: noDevices, Message: "it asks for 2 of example.com/gpu; the node has 2 for pods and others ask for 1"}},
		"more than there are":       {claim(a, none), claim(b, two), of(1, true), Verdict{Answer: Reject, Reason: noDevices, Message: "it asks for 2 of example.com/gpu; the node has 1 for pods and others ask for 0", Never: true}},
		"who has them ends":         {claim(a, nil, two), claim(b, one), of(2, true), Verdict{Answer: Wait, Reason: noDevices, Message: "it asks for 1 of example.com/gpu; the node has 2 for pods and others ask for 2, which are ending"}},
		"the first of two":          {claim(a, one), claim(b, one), of(1, true), Verdict{Answer: Reject, Reason: noDevices, Message: "it asks for 1 of example.com/gpu; the node has 1 for pods and others ask for 1"}},
		"no plugin yet":             {claim(a, none), claim(b, one), of(0, false), Verdict{Answer: Wait, Reason: noDevices, Message: unserved}},
		"none ever":                 {claim(a, none), claim(b, one), map[v1.ResourceName]Devices{}, Verdict{Answer: Wait, Reason: noDevices, Message: unserved}},
		"runs, and its plugin died": {claim(a, none), claim(b, one, one), of(1, false), Verdict{}},
		"would have more of it":     {claim(a, none), claim(b, two, one), of(1, false), Verdict{Answer: Reject, Reason: noDevices, Message: "it asks for 2 of example.com/gpu, which no device plugin serves now; it starts when one registers"}},
		"its edit asks for as many, and its plugin died": {claim(a, none), claim(b, one, needing(t, "was", 1)), of(1, false), Verdict{Answer: Reject, Reason: noDevices, Message: unserved}},
		"asks for none":             {claim(a, none), claim(b, none), nil, Verdict{}},
		"none are served":           {claim(a, none), claim(b, one), nil, Verdict{Answer: Reject, Reason: noDevices, Message: "it asks for example.com/gpu, and no device plugin is served here; podd run without --runonce serves them", Never: true}},
		"its edit asks for as many": {claim(a, none), claim(b, one, needing(t, "was", 1)), of(1, true), Verdict{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Admission([]Claimant{tt.other, tt.asks}, Limits{Devices: tt.devices})[b]
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestDevicesUnknown: who does not know what a plugin lists keeps nothing back.
func TestDevicesUnknown(t *testing.T) {
	a := types.NamespacedName{Name: "a"}
	for _, devices := range []map[v1.ResourceName]Devices{nil, {}} {
		limits := Limits{Amounts: Amounts{v1.ResourceCPU: 1000}, Devices: devices, DevicesUnknown: true}
		if got := Admission([]Claimant{{Key: a, Wants: needing(t, "one", 1)}}, limits)[a]; got != (Verdict{}) {
			t.Errorf("got %+v", got)
		}
	}
}
