package render

import (
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// Cgroup is a cgroup that podd itself makes and limits: that of a pod, or one
// that pods lie in. The zero value of a limit sets none.
type Cgroup struct {
	// Parent is its name for the cgroup driver, as CgroupParent gives it.
	Parent string
	// Systemd says that the driver is systemd's; else it is cgroupfs.
	Systemd bool
	// CPUShares are those of cgroup v1; v2 has a weight made of them.
	CPUShares int64
	CPUQuota  int64 // µs a period
	CPUPeriod int64 // µs
	Memory    int64 // bytes
	Pids      int64
	HugePages []*cri.HugepageLimit
}

// PodCgroup is what all of a pod's containers share. A limit holds for the pod
// when every container has one, or the pod itself: the sum then bounds what
// is not any container's own, like the pages of an emptyDir in memory.
func PodCgroup(p *manifest.Pod, n Node) Cgroup {
	requests, limits := manifest.PodRequests(&p.Spec.Spec), manifest.PodLimits(&p.Spec.Spec)
	c := Cgroup{
		Parent: CgroupParent(p, n), Systemd: n.CgroupDriver == "systemd",
		CPUShares: minShares, Pids: max(n.PodPids, 0),
		HugePages: hugePages(n.HugePageSizes, limits),
	}
	if manifest.QoS(p.Spec) == v1.PodQOSBestEffort {
		return c
	}
	c.CPUShares = shares(requests.Cpu().MilliValue())
	if !n.NoCPUQuota && limitsAll(p.Spec, v1.ResourceCPU) {
		c.CPUQuota, c.CPUPeriod = quota(limits.Cpu().MilliValue()), quotaPeriod
	}
	if limitsAll(p.Spec, v1.ResourceMemory) {
		c.Memory = limits.Memory().Value()
	}
	return c
}

// AtLeast is c with limits that are none lower than those of b, of the same pod
// in another size.
func (c Cgroup) AtLeast(b Cgroup) Cgroup {
	c.CPUShares, c.CPUQuota, c.Memory = max(c.CPUShares, b.CPUShares), max(c.CPUQuota, b.CPUQuota), max(c.Memory, b.Memory)
	return c
}

// limitsAll tells whether a resource is limited for the pod or each container.
func limitsAll(pod *v1.Pod, name v1.ResourceName) bool {
	if pod.Spec.Resources != nil && !none(pod.Spec.Resources.Limits, name) {
		return true
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if none(list[i].Resources.Limits, name) {
				return false
			}
		}
	}
	return true
}

func none(list v1.ResourceList, name v1.ResourceName) bool {
	q, ok := list[name]
	return !ok || q.IsZero()
}

// ClassRequest is what a pod adds to the shares of the Burstable class, in
// thousandths of a cpu.
func ClassRequest(pod *v1.Pod) int64 {
	if manifest.QoS(pod) != v1.PodQOSBurstable {
		return 0
	}
	requests := manifest.PodRequests(&pod.Spec)
	return requests.Cpu().MilliValue()
}

// ClassCgroups are those that pods lie in, parents first. burstable is the sum of
// ClassRequest.
func ClassCgroups(n Node, burstable int64) []Cgroup {
	systemd := n.CgroupDriver == "systemd"
	all := Cgroup{Parent: cgroupName(n, "kubepods"), Systemd: systemd, Memory: n.PodsLimit.Memory, Pids: n.PodsLimit.Pids}
	if n.PodsLimit.MilliCPU > 0 {
		all.CPUShares = shares(n.PodsLimit.MilliCPU)
	}
	return []Cgroup{
		all,
		{Parent: cgroupName(n, "kubepods", "burstable"), Systemd: systemd, CPUShares: shares(burstable)},
		{Parent: cgroupName(n, "kubepods", "besteffort"), Systemd: systemd, CPUShares: minShares},
	}
}
