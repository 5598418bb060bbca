package view

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/daemon/nodestatus"
	"podd/cmd/podd/internal/host"
	"podd/manifest/manifesttest/apifields"
	"podd/reconcile"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/render"
	"podd/runtime"
)

// unsetNodeFields contains the fields of a v1.NodeStatus that are not in the View, and why.
var unsetNodeFields = map[string]string{
	"NodeStatus.phase":                "deprecated; the kubelet does not set it either",
	"NodeStatus.volumesInUse":         "only the Node in a cluster has it; package nodesync sets it",
	"NodeStatus.volumesAttached":      "the attach-detach controller sets it",
	"NodeStatus.config":               "Kubernetes has removed the dynamic configuration of kubelets; podd sets a condition instead",
	"NodeSystemInfo.kubeProxyVersion": "deprecated; the kubelet clears it",
}

// unsetNodeConditions contains the types of conditions that podd does not set, and why.
var unsetNodeConditions = map[v1.NodeConditionType]string{
	v1.NodeNetworkUnavailable:             "controllers of routes and network plugins set it",
	v1.NodeGracefulNodeShutdownInProgress: "administrators set it",
	v1.NodeDrainInProgress:                "administrators set it",
	v1.NodeDrained:                        "administrators set it",
	v1.NodeMaintenancePlanned:             "administrators set it",
	v1.NodeMaintenanceInProgress:          "administrators set it",
}

// fieldSample returns a Node with all fields and all conditions that podd sets, except the fields that
// depend on the host.
func fieldSample(t *testing.T) *v1.Node {
	amounts := render.Resources{MilliCPU: 1000, Memory: 1 << 30, EphemeralStorage: 1 << 30}
	template := nodestatus.NewNode(nodestatus.NodeOptions{
		Node: render.Node{Name: "n1", Capacity: amounts, Allocatable: amounts}, Info: host.SystemInfo(&config.Node{}),
		RootDir: t.TempDir(), KubeletAddress: "127.0.0.1:10250",
	})
	change := reconcile.Change{Node: runtime.Node{Name: "containerd", Version: "2.4.2", Ready: true, NetworkReady: true, Handlers: map[string]runtime.Handler{"vm": {}}}}
	facts := &nodeFacts{Pressure: &pressure.Conditions{}, Images: []v1.ContainerImage{{Names: []string{"a:1"}, SizeBytes: 1}}}
	return NewNodeBuilder(template, []string{"192.0.2.1"}).update(change, facts)
}

// TestNode_Fields checks that podd sets all fields of a v1.NodeStatus except unsetNodeFields.
func TestNode_Fields(t *testing.T) {
	// On some hosts, host.SystemInfo does not find the values of these fields.
	swap := int64(1)
	dependOnHost := v1.NodeSystemInfo{MachineID: "a", SystemUUID: "b", BootID: "c", Swap: &v1.NodeSwapStatus{Capacity: &swap}}
	apifields.Check(t, unsetNodeFields, fieldSample(t).Status, dependOnHost)
}

// TestNode_ConditionTypes checks that podd sets all types of conditions except unsetNodeConditions.
func TestNode_ConditionTypes(t *testing.T) {
	var got []string
	for _, c := range fieldSample(t).Status.Conditions {
		got = append(got, string(c.Type))
	}
	for _, name := range apifields.Constants(t, "NodeConditionType") {
		if isSet, reason := slices.Contains(got, name), unsetNodeConditions[v1.NodeConditionType(name)]; isSet == (reason != "") {
			t.Errorf("condition %s: got set %t and the reason %q why it is not set, want exactly one of them", name, isSet, reason)
		}
	}
}
