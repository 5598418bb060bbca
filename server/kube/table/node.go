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
		newColumn("Status", "Whether the node is ready, and whether it accepts new pods."),
		newColumn("Roles", "The node's roles, from its labels."),
		ageColumn(),
		newColumn("Version", fieldDescription(v1.NodeSystemInfo{}, "kubeletVersion")),
		newWideColumn("Internal-IP", fieldDescription(v1.NodeStatus{}, "addresses")),
		newWideColumn("External-IP", fieldDescription(v1.NodeStatus{}, "addresses")),
		newWideColumn("OS-Image", fieldDescription(v1.NodeSystemInfo{}, "osImage")),
		newWideColumn("Kernel-Version", fieldDescription(v1.NodeSystemInfo{}, "kernelVersion")),
		newWideColumn("Container-Runtime", fieldDescription(v1.NodeSystemInfo{}, "containerRuntimeVersion")),
	}
}

func nodeCells(n *v1.Node, now time.Time) []any {
	i := n.Status.NodeInfo
	return []any{
		n.Name, nodeStatus(n), valueOr(strings.Join(nodeRoles(n), ","), none), ageOf(n, now), i.KubeletVersion,
		nodeAddress(n, v1.NodeInternalIP), nodeAddress(n, v1.NodeExternalIP),
		valueOr(i.OSImage, unknown), valueOr(i.KernelVersion, unknown), valueOr(i.ContainerRuntimeVersion, unknown),
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

// nodeRoles returns the suffixes of the node-role labels, and the value of the older
// role label, sorted.
func nodeRoles(n *v1.Node) []string {
	var roles []string
	for name, value := range n.Labels {
		role, ok := strings.CutPrefix(name, "node-role.kubernetes.io/")
		if !ok && name == "kubernetes.io/role" {
			role, ok = value, true
		}
		if ok && role != "" {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

func nodeAddress(n *v1.Node, t v1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == t {
			return a.Address
		}
	}
	return none
}
