package cli

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/cmd/podd/internal/printer"
	"podd/manifest"
)

// writeNode writes a node and the resources that its pods request.
func (d *description) writeNode(n *v1.Node, pods []v1.Pod) {
	d.beginObject()
	d.writeLine(0, "Name:\t%s", n.Name)
	var roles []string
	for label := range n.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	d.writeLine(0, "Roles:\t%s", printer.OrNone(strings.Join(roles, ",")))
	d.writePairs("Labels", "=", n.Labels)
	d.writePairs("Annotations", ": ", n.Annotations)
	d.writeLine(0, "CreationTimestamp:\t%s", formatTimestamp(n.CreationTimestamp))
	var taints []string
	for _, t := range n.Spec.Taints {
		taints = append(taints, t.ToString())
	}
	d.writeList(0, "Taints", taints)
	d.writeLine(0, "Unschedulable:\t%s", n.Spec.Unschedulable)
	if len(n.Status.Conditions) > 0 {
		d.writeLine(0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage\n  ----\t------\t-----------------\t------------------\t------\t-------")
		for _, c := range n.Status.Conditions {
			d.writeLine(1, "%s \t%s \t%s \t%s \t%s \t%s", c.Type, c.Status, formatTimestamp(c.LastHeartbeatTime), formatTimestamp(c.LastTransitionTime), c.Reason, c.Message)
		}
	}
	d.writeLine(0, "Addresses:")
	for _, a := range n.Status.Addresses {
		d.writeLine(1, "%s:\t%s", a.Type, a.Address)
	}
	d.writeResources(0, "Capacity", n.Status.Capacity)
	d.writeResources(0, "Allocatable", n.Status.Allocatable)
	i := n.Status.NodeInfo
	d.writeLine(0, "System Info:")
	for _, line := range [][2]string{
		{"Machine ID", i.MachineID}, {"System UUID", i.SystemUUID}, {"Boot ID", i.BootID}, {"Kernel Version", i.KernelVersion},
		{"OS Image", i.OSImage}, {"Operating System", i.OperatingSystem}, {"Architecture", i.Architecture},
		{"Container Runtime Version", i.ContainerRuntimeVersion}, {"Kubelet Version", i.KubeletVersion},
	} {
		d.writeLine(1, line[0]+":\t%s", line[1])
	}
	d.writeLineIfSet(0, "PodCIDR", n.Spec.PodCIDR)
	d.writeAllocated(n, pods)
	d.writeEvents(func(o *v1.ObjectReference) bool { return o.Kind == "Node" && o.Name == n.Name })
}

// writeAllocated writes the requests and limits of the pods that have not terminated.
func (d *description) writeAllocated(n *v1.Node, pods []v1.Pod) {
	activePods := slices.DeleteFunc(slices.Clone(pods), func(p v1.Pod) bool {
		return manifest.IsTerminal(p.Status.Phase)
	})
	d.writeLine(0, "Non-terminated Pods:\t(%s in total)", len(activePods))
	d.writeLine(1, "Namespace\tName\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge")
	d.writeLine(1, "---------\t----\t------------\t----------\t---------------\t-------------\t---")
	sumRequests, sumLimits := v1.ResourceList{}, v1.ResourceList{}
	for i := range activePods {
		p := &activePods[i]
		requests, limits := manifest.PodRequests(p), manifest.PodLimits(p)
		addResources(sumRequests, requests)
		addResources(sumLimits, limits)
		d.writeLine(1, "%s\t%s\t%s\t%s\t%s\t%s\t%s", p.Namespace, p.Name,
			formatWithPercent(n, requests, v1.ResourceCPU), formatWithPercent(n, limits, v1.ResourceCPU), formatWithPercent(n, requests, v1.ResourceMemory), formatWithPercent(n, limits, v1.ResourceMemory),
			printer.FormatAge(p.CreationTimestamp.Time, d.now))
	}
	d.writeLine(0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)\n  Resource\tRequests\tLimits\n  --------\t--------\t------")
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		d.writeLine(1, "%s\t%s\t%s", name, formatWithPercent(n, sumRequests, name), formatWithPercent(n, sumLimits, name))
	}
}

// formatWithPercent formats an amount and its percentage of the node's allocatable amount.
func formatWithPercent(n *v1.Node, amounts v1.ResourceList, name v1.ResourceName) string {
	q := amounts[name]
	percent := int64(0)
	if allocatable := n.Status.Allocatable[name]; allocatable.MilliValue() > 0 {
		percent = int64(float64(q.MilliValue()) / float64(allocatable.MilliValue()) * 100)
	}
	return fmt.Sprintf("%s (%d%%)", q.String(), percent)
}

// addResources adds amounts to total, resource by resource.
func addResources(total, amounts v1.ResourceList) {
	for name, q := range amounts {
		sum, ok := total[name]
		if !ok {
			sum = resource.Quantity{Format: q.Format}
		}
		sum.Add(q)
		total[name] = sum
	}
}
