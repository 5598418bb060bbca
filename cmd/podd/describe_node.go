package main

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// node says all of a node, and what of it its pods have.
func (d *description) node(n *v1.Node, pods []v1.Pod) {
	d.begin()
	d.say(0, "Name:\t%s", n.Name)
	var roles []string
	for label := range n.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	d.say(0, "Roles:\t%s", orNone(strings.Join(roles, ",")))
	d.pairs(0, "Labels", "=", n.Labels)
	d.pairs(0, "Annotations", ": ", n.Annotations)
	d.say(0, "CreationTimestamp:\t%s", stamp(n.CreationTimestamp))
	var taints []string
	for _, t := range n.Spec.Taints {
		taints = append(taints, t.ToString())
	}
	d.list(0, "Taints", taints)
	d.say(0, "Unschedulable:\t%s", n.Spec.Unschedulable)
	if len(n.Status.Conditions) > 0 {
		d.say(0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage\n  ----\t------\t-----------------\t------------------\t------\t-------")
		for _, c := range n.Status.Conditions {
			d.say(1, "%s \t%s \t%s \t%s \t%s \t%s", c.Type, c.Status, stamp(c.LastHeartbeatTime), stamp(c.LastTransitionTime), c.Reason, c.Message)
		}
	}
	d.say(0, "Addresses:")
	for _, a := range n.Status.Addresses {
		d.say(1, "%s:\t%s", a.Type, a.Address)
	}
	d.capacity("Capacity", n.Status.Capacity)
	d.capacity("Allocatable", n.Status.Allocatable)
	i := n.Status.NodeInfo
	d.say(0, "System Info:")
	for _, line := range [][2]string{
		{"Machine ID", i.MachineID}, {"System UUID", i.SystemUUID}, {"Boot ID", i.BootID}, {"Kernel Version", i.KernelVersion},
		{"OS Image", i.OSImage}, {"Operating System", i.OperatingSystem}, {"Architecture", i.Architecture},
		{"Container Runtime Version", i.ContainerRuntimeVersion}, {"Kubelet Version", i.KubeletVersion},
	} {
		d.say(1, line[0]+":\t%s", line[1])
	}
	d.sayIf(0, "PodCIDR", n.Spec.PodCIDR)
	d.used(n, pods)
	d.happened(func(o *v1.ObjectReference) bool { return o.Kind == "Node" && o.Name == n.Name })
}

func (d *description) capacity(label string, all v1.ResourceList) {
	if len(all) == 0 {
		return
	}
	d.say(0, label+":")
	var names []string
	for name := range all {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		q := all[v1.ResourceName(name)]
		d.say(1, "%s:\t%s", name, q.String())
	}
}

// used says what the pods that have not ended ask for and may have.
func (d *description) used(n *v1.Node, pods []v1.Pod) {
	live := slices.DeleteFunc(slices.Clone(pods), func(p v1.Pod) bool {
		return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
	})
	d.say(0, "Non-terminated Pods:\t(%s in total)", len(live))
	d.say(1, "Namespace\tName\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge")
	d.say(1, "---------\t----\t------------\t----------\t---------------\t-------------\t---")
	sum := [2]v1.ResourceList{{}, {}}
	for i := range live {
		p := &live[i]
		asks := [2]v1.ResourceList{askedBy(p, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Requests }), askedBy(p, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Limits })}
		for n := range sum {
			addAmounts(sum[n], asks[n])
		}
		d.say(1, "%s\t%s\t%s\t%s\t%s\t%s\t%s", p.Namespace, p.Name,
			share(n, asks[0], v1.ResourceCPU), share(n, asks[1], v1.ResourceCPU), share(n, asks[0], v1.ResourceMemory), share(n, asks[1], v1.ResourceMemory),
			since(p.CreationTimestamp.Time, d.now))
	}
	d.say(0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)\n  Resource\tRequests\tLimits\n  --------\t--------\t------")
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		d.say(1, "%s\t%s\t%s", name, share(n, sum[0], name), share(n, sum[1], name))
	}
}

// share is an amount, and how much of the node's it is.
func share(n *v1.Node, all v1.ResourceList, name v1.ResourceName) string {
	q := all[name]
	percent := int64(0)
	if whole := n.Status.Allocatable[name]; whole.MilliValue() > 0 {
		percent = int64(float64(q.MilliValue()) / float64(whole.MilliValue()) * 100)
	}
	return fmt.Sprintf("%s (%d%%)", q.String(), percent)
}

// askedBy is what a pod as a whole asks for: its containers and sidecars
// together, or an init container if that is more; and its overhead.
func askedBy(p *v1.Pod, of func(*v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	sum, most := v1.ResourceList{}, v1.ResourceList{}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			addAmounts(sum, of(&c.Resources))
			continue
		}
		with := v1.ResourceList{}
		addAmounts(with, sum) // the sidecars that run already
		addAmounts(with, of(&c.Resources))
		raise(most, with)
	}
	for i := range p.Spec.Containers {
		addAmounts(sum, of(&p.Spec.Containers[i].Resources))
	}
	raise(sum, most)
	addAmounts(sum, p.Spec.Overhead)
	return sum
}

func addAmounts(to, more v1.ResourceList) {
	for name, q := range more {
		have, ok := to[name]
		if !ok {
			have = resource.Quantity{Format: q.Format}
		}
		have.Add(q)
		to[name] = have
	}
}

// raise makes each amount at least what least has of it.
func raise(to, least v1.ResourceList) {
	for name, q := range least {
		if have, ok := to[name]; !ok || have.Cmp(q) < 0 {
			to[name] = q.DeepCopy()
		}
	}
}
