package render

import (
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// A Cgroup is a cgroup that podd creates, with its limits. It is the cgroup of a pod or a parent of
// the cgroups of pods. A limit of 0 means that podd sets no limit.
type Cgroup struct {
	// Path is the path of the cgroup in the form of cgroupParent.
	Path string
	// UsesSystemd reports whether the cgroup driver is systemd. Otherwise it is cgroupfs.
	UsesSystemd bool
	// CPUShares are the CPU shares of cgroup v1, which are converted to a weight for v2.
	CPUShares int64
	CPUQuota  int64 // µs per period; negative removes a limit that the cgroup already has
	CPUPeriod int64 // µs
	// CPUs contains the CPUs that the cgroup can use, in the format of Node.CPUs; "" means that podd
	// does not set them.
	CPUs      string
	Memory    int64 // bytes
	Pids      int64
	HugePages []*cri.HugepageLimit
	// Protection is the protection and throttling of memory; nil means that podd does not set it,
	// as on cgroup v1.
	Protection *MemoryProtection
}

// Driver returns the cgroup driver of c.
func (c Cgroup) Driver() string {
	if c.UsesSystemd {
		return "systemd"
	}
	return "cgroupfs"
}

// PodCgroup returns the cgroup of a pod. The cgroup limits CPU or memory if the pod or each of its
// containers limits it. The memory limit also covers memory that does not belong to a container,
// such as the pages of an emptyDir in memory.
func PodCgroup(p *manifest.Pod, n Node) Cgroup {
	requests, limits := manifest.PodRequests(p.Object), manifest.PodLimits(p.Object)
	c := Cgroup{
		Path: cgroupParent(p, n), UsesSystemd: n.CgroupDriver == "systemd",
		CPUShares: minShares, Pids: max(n.PodPIDsLimit, 0),
		HugePages: hugePages(n.HugePageSizes, limits), Protection: podMemoryProtection(n, p.Object, requests, limits),
	}
	if manifest.QoS(p.Object) == v1.PodQOSBestEffort {
		return c
	}
	c.CPUShares = cpuShares(requests.Cpu().MilliValue())
	if isLimited(p.Object, v1.ResourceCPU) {
		c.CPUPeriod = n.CPUQuota.periodMicros()
		c.CPUQuota = cpuQuota(limits.Cpu().MilliValue(), c.CPUPeriod)
		if n.CPUQuota.IsDisabled {
			c.CPUQuota = unlimitedQuota
		}
	}
	if isLimited(p.Object, v1.ResourceMemory) {
		c.Memory = limits.Memory().Value()
	}
	return c
}

// WithLimitsAtLeast returns c with each limit raised to the limit of b if that is higher. The
// result has no limit for a resource if c or b has none. b is the cgroup of the same pod with other
// resources.
func (c Cgroup) WithLimitsAtLeast(b Cgroup) Cgroup {
	c.CPUShares = max(c.CPUShares, b.CPUShares)
	if c.CPUQuota = higherLimit(c.CPUQuota, b.CPUQuota); c.CPUQuota == 0 {
		c.CPUPeriod = 0
	}
	c.Memory = higherLimit(c.Memory, b.Memory)
	if c.Protection != nil && b.Protection != nil {
		p := c.Protection.atLeast(*b.Protection)
		c.Protection = &p
	}
	return c
}

// higherLimit returns the higher of two limits, of which 0 means no limit.
func higherLimit(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// isLimited reports whether the pod or each of its containers limits a resource.
func isLimited(pod *v1.Pod, name v1.ResourceName) bool {
	if pod.Spec.Resources != nil && !isUnlimited(pod.Spec.Resources.Limits, name) {
		return true
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if isUnlimited(list[i].Resources.Limits, name) {
				return false
			}
		}
	}
	return true
}

func isUnlimited(list v1.ResourceList, name v1.ResourceName) bool {
	q, ok := list[name]
	return !ok || q.IsZero()
}

// PeriodicQOSCgroups returns the part of QOSCgroups that podd sets again at intervals, so that a value
// that was changed by another program is restored: the cgroups of the QoS classes, and the memory
// protection of the cgroup of all pods if memory is protected. As in the kubelet, the other limits of the
// cgroup of all pods remain changed until podd starts again.
func PeriodicQOSCgroups(n Node, sum QOSRequests) []Cgroup {
	all := QOSCgroups(n, sum)
	if len(all) == 0 {
		return nil
	}
	kubepods, classes := all[0], all[1:]
	if kubepods.Protection == nil || !n.MemoryQoS.ReservesRequests {
		return classes
	}
	return append([]Cgroup{{Path: kubepods.Path, UsesSystemd: kubepods.UsesSystemd, Protection: kubepods.Protection}}, classes...)
}

// QOSCgroups returns the cgroup of all pods and the cgroups of the QoS classes, parents first. It
// returns nil if pods have no cgroups. sum contains the requests of all pods.
func QOSCgroups(n Node, sum QOSRequests) []Cgroup {
	if n.WithoutPodCgroups {
		return nil
	}
	systemd := n.CgroupDriver == "systemd"
	kubepods := Cgroup{
		Path: cgroupName(n, "kubepods"), UsesSystemd: systemd, CPUs: n.CPUs, Memory: n.AllPodsLimit.Memory, Pids: n.AllPodsLimit.Pids,
		HugePages: unlimitedHugePages(n.HugePageSizes),
	}
	if n.AllPodsLimit.MilliCPU > 0 {
		kubepods.CPUShares = cpuShares(n.AllPodsLimit.MilliCPU)
	}
	burstable := Cgroup{Path: cgroupName(n, "kubepods", "burstable"), UsesSystemd: systemd, CPUShares: cpuShares(sum.BurstableMilliCPU)}
	kubepods.Protection, burstable.Protection = n.qosMemoryProtection(sum)
	return []Cgroup{kubepods, burstable, BestEffortCgroup(n)}
}

// BestEffortCgroup returns the cgroup of the QoS class BestEffort. It does not depend on the pods.
func BestEffortCgroup(n Node) Cgroup {
	return Cgroup{Path: cgroupName(n, "kubepods", "besteffort"), UsesSystemd: n.CgroupDriver == "systemd", CPUShares: minShares}
}
