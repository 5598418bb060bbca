package view

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/device/allocation"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/node"
	"podd/runtime"
	"podd/server"
)

// TestNode checks the Node after changes of the runtime, the addresses, the pressure, the images and
// the devices. If nothing has changed, update must return the same pointer.
func TestNode(t *testing.T) {
	v := NewNodeBuilder(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: v1.NodeStatus{
			Capacity:        v1.ResourceList{v1.ResourcePods: resource.MustParse("7")},
			Allocatable:     v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")},
			DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: 10250}},
		},
	}, []string{"10.0.0.1"})
	var facts *nodeFacts
	// check updates the Node and checks its condition Ready.
	check := func(r runtime.Node, status v1.ConditionStatus, message string) *v1.Node {
		t.Helper()
		n := v.update(reconcile.Change{Node: r}, facts)
		if c := n.Status.Conditions[len(n.Status.Conditions)-1]; c.Type != v1.NodeReady || c.Status != status || c.Message != message {
			t.Errorf("got condition %+v, want %s with message %q", c, status, message)
		}
		return n
	}
	check(runtime.Node{}, v1.ConditionFalse, "the runtime has not responded yet")
	check(runtime.Node{Ready: true, NetworkMessage: "no CNI"}, v1.ConditionFalse, "no CNI")
	ready := runtime.Node{Name: "containerd", Version: "v2.4.2", Ready: true, NetworkReady: true}
	n := check(ready, v1.ConditionTrue, "podd runs pods")
	if check(ready, v1.ConditionTrue, "podd runs pods") != n {
		t.Error("unchanged runtime: got another object, want the same pointer")
	}
	s := n.Status
	if s.Capacity.Pods().Value() != 7 || s.Allocatable.Cpu().Value() != 2 || s.NodeInfo.ContainerRuntimeVersion != "containerd://2.4.2" || s.DaemonEndpoints.KubeletEndpoint.Port != 10250 || s.Addresses[0].Address != "10.0.0.1" {
		t.Errorf("got status %+v, want 7 pods, 2 CPUs, containerd 2.4.2, port 10250 and address 10.0.0.1", s)
	}
	moved := v.update(reconcile.Change{Node: ready, Addresses: node.Addresses{IPs: []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}}}, facts)
	if diff := cmp.Diff([]v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.2"}, {Type: v1.NodeInternalIP, Address: "fd00::2"}, {Type: v1.NodeHostName, Address: "n1"}}, moved.Status.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	facts = &nodeFacts{
		Pressure: &pressure.Conditions{Memory: true},
		Images:   []v1.ContainerImage{{Names: []string{"a:1"}, SizeBytes: 1}},
	}
	n2 := check(ready, v1.ConditionTrue, "podd runs pods")
	var conditions []string
	for _, c := range n2.Status.Conditions {
		conditions = append(conditions, string(c.Type)+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	if diff := cmp.Diff([]string{
		"MemoryPressure=True KubeletHasInsufficientMemory: kubelet has insufficient memory available",
		"DiskPressure=False KubeletHasNoDiskPressure: kubelet has no disk pressure",
		"PIDPressure=False KubeletHasSufficientPID: kubelet has sufficient PID available",
		"Ready=True KubeletReady: podd runs pods",
	}, conditions); diff != "" || len(n2.Status.Images) != 1 {
		t.Errorf("got %d images, want 1; conditions (-want +got):\n%s", len(n2.Status.Images), diff)
	}
	if want, got := n.Status.Conditions[0].LastTransitionTime, n2.Status.Conditions[3].LastTransitionTime; got != want {
		t.Errorf("got transition time %v of the unchanged condition Ready, want %v", got, want)
	}
	withFeatures := ready
	withFeatures.Handlers, withFeatures.SupplementalGroupsPolicy = map[string]runtime.Handler{"vm": {}, "": {UserNamespaces: true}}, true
	var handlers []string
	n3 := check(withFeatures, v1.ConditionTrue, "podd runs pods")
	for _, h := range n3.Status.RuntimeHandlers {
		handlers = append(handlers, fmt.Sprintf("%q userNamespaces=%t recursiveReadOnlyMounts=%t", h.Name, *h.Features.UserNamespaces, *h.Features.RecursiveReadOnlyMounts))
	}
	if diff := cmp.Diff([]string{`"" userNamespaces=true recursiveReadOnlyMounts=false`, `"vm" userNamespaces=false recursiveReadOnlyMounts=false`}, handlers); diff != "" || !*n3.Status.Features.SupplementalGroupsPolicy || n2.Status.Features != nil {
		t.Errorf("got features %+v; handlers (-want +got):\n%s", n3.Status.Features, diff)
	}
	if check(withFeatures, v1.ConditionTrue, "podd runs pods") != n3 {
		t.Error("unchanged handlers: got another object, want the same pointer")
	}
	const gpu = "example.com/gpu"
	c := reconcile.Change{Node: ready, Devices: map[v1.ResourceName]allocation.Count{gpu: {Total: 2, Listed: 2, Healthy: 2, IsServed: true}}}
	c.Capacity.EphemeralStorage, c.Allocatable.EphemeralStorage = 3<<30, 2<<30
	s = v.update(c, facts).Status
	if n := s.Capacity[gpu]; n.Value() != 2 {
		t.Errorf("got status %+v, want 2 GPUs", s)
	}
	if capacity, allocatable := s.Capacity.StorageEphemeral().String(), s.Allocatable.StorageEphemeral().String(); capacity != "3221225472" || allocatable != "2147483648" { // the kubelet's format
		t.Errorf("ephemeral storage: got capacity %s and allocatable %s, want 3221225472 and 2147483648", capacity, allocatable)
	}
	c.Devices = map[v1.ResourceName]allocation.Count{gpu: {Total: 1, Listed: 2}}
	s = v.update(c, facts).Status
	if capacity, allocatable := s.Capacity[gpu], s.Allocatable[gpu]; capacity.Value() != 2 || allocatable.Value() != 0 {
		t.Errorf("got status %+v, want 2 GPUs, of which none is allocatable", s)
	}
	c.Devices = map[v1.ResourceName]allocation.Count{gpu: {Total: 1}}
	s = v.update(c, facts).Status
	if capacity, listed := s.Capacity[gpu]; capacity.Value() != 0 || !listed {
		t.Errorf("device plugin not connected: got status %+v, want 0 GPUs, because no plugin lists the allocated one", s)
	}
	c.Devices = map[v1.ResourceName]allocation.Count{gpu: {Total: 3, Listed: 5, Healthy: 2, IsServed: true}}
	s = v.update(c, facts).Status
	if capacity, allocatable := s.Capacity[gpu], s.Allocatable[gpu]; capacity.Value() != 5 || allocatable.Value() != 2 {
		t.Errorf("unhealthy devices: got status %+v, want 5 GPUs, and only the 2 healthy ones allocatable", s)
	}
}

// TestNode_Config checks that the Node has the condition of the configuration, and that the problem of the
// configuration is the first problem.
func TestNode_Config(t *testing.T) {
	s := NewNodeState(NodeProblems{DNS: &manifest.Problem{Message: "no name server"}})
	s.SetConfig(v1.NodeCondition{Type: server.ConfigCondition, Status: v1.ConditionFalse, Reason: "ConfigNotUsed"}, &manifest.Problem{Message: "rejected"})
	problems, facts := s.get()
	n := NewNodeBuilder(&v1.Node{}, nil).update(reconcile.Change{}, facts)
	if c := n.Status.Conditions; len(c) != 2 || c[0].Type != server.ConfigCondition || c[0].Reason != "ConfigNotUsed" || c[0].LastTransitionTime.IsZero() {
		t.Errorf("got conditions %+v, want KubeletConfigOk and Ready", c)
	}
	if list := problems.list(nil); len(list) != 2 || list[0].Message != "rejected" {
		t.Errorf("got problems %v, want the one of the configuration first", list)
	}
}
