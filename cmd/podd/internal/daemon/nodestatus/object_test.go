package nodestatus

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/admission"
	"podd/reconcile/render"
)

// TestNewNode checks the name, resources, port and declared features of the Node.
func TestNewNode(t *testing.T) {
	amounts := render.Resources{MilliCPU: 2000, Memory: 1 << 30, EphemeralStorage: 1 << 30}
	n := NewNode(NodeOptions{
		Node: render.Node{Name: "n1", Capacity: amounts, Allocatable: amounts}, Limits: admission.Limits{MaxPods: 7},
		Instance: "id", RootDir: t.TempDir(), KubeletAddress: "127.0.0.1:10250",
	})
	s := n.Status
	if !slices.Contains(s.DeclaredFeatures, "RestartAllContainersOnContainerExits") {
		t.Errorf("declared features: got %v, want those of package admission", s.DeclaredFeatures)
	}
	for _, list := range []v1.ResourceList{s.Capacity, s.Allocatable} {
		if got := list[v1.ResourceEphemeralStorage]; got.String() != "1073741824" { // the kubelet's format
			t.Errorf("ephemeral-storage: got %s, want 1073741824", &got)
		}
	}
	if n.Name != "n1" || s.Capacity.Pods().Value() != 7 || s.Allocatable.Cpu().Value() != 2 || s.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
		t.Errorf("got name %s, status %+v; want n1 with 7 pods, 2 CPUs and port 10250", n.Name, s)
	}
}
