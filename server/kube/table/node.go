package table

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func nodeColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(),
		column("Status", "Whether the node is ready, and whether it accepts new pods."),
		column("Roles", "The node's roles, from its labels."),
		ageColumn(),
		column("Version", field(v1.NodeSystemInfo{}, "kubeletVersion")),
		wide("Internal-IP", field(v1.NodeStatus{}, "addresses")),
		wide("External-IP", field(v1.NodeStatus{}, "addresses")),
		wide("OS-Image", field(v1.NodeSystemInfo{}, "osImage")),
		wide("Kernel-Version", field(v1.NodeSystemInfo{}, "kernelVersion")),
		wide("Container-Runtime", field(v1.NodeSystemInfo{}, "containerRuntimeVersion")),
	}
}

func nodeCells(n *v1.Node, now time.Time) []any {
	i := n.Status.NodeInfo
	return []any{
		n.Name, nodeStatus(n), or(strings.Join(roles(n), ","), none), ageOf(n, now), i.KubeletVersion,
		nodeAddress(n, v1.NodeInternalIP), nodeAddress(n, v1.NodeExternalIP),
		or(i.OSImage, unknown), or(i.KernelVersion, unknown), or(i.ContainerRuntimeVersion, unknown),
	}
}

func nodeStatus(n *v1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != v1.NodeReady:
		case c.Status == v1.ConditionTrue:
			status = "Ready"
		default:
			status = "NotReady"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// roles returns the suffixes of the node-role labels, and the value of the older
// role label, sorted.
func roles(n *v1.Node) []string {
	var all []string
	for name, value := range n.Labels {
		role, ok := strings.CutPrefix(name, "node-role.kubernetes.io/")
		if !ok && name == "kubernetes.io/role" {
			role, ok = value, true
		}
		if ok && role != "" {
			all = append(all, role)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func nodeAddress(n *v1.Node, t v1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == t {
			return a.Address
		}
	}
	return none
}
