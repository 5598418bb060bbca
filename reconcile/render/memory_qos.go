package render

import (
	"cmp"
	"maps"
	"math"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// MemoryQoS configures how the kernel treats the memory of pods when the host is short of memory. It
// has an effect only on cgroup v2.
type MemoryQoS struct {
	// ReservesRequests reports whether the requested memory is protected from reclaim. The kernel
	// never reclaims the requests of Guaranteed pods. It reclaims those of Burstable pods only if
	// there is no other memory to reclaim.
	ReservesRequests bool
	// ThrottlingFactor determines the usage at which a container is throttled: its memory request
	// plus this part of the difference between its limit and its request. 0 means never; the
	// maximum is 1.
	ThrottlingFactor float64
	// UnreservedMemory is the memory of the node in bytes that is not reserved for the system. If
	// memory is throttled, it replaces the limit of a container that has none. Unlike the allocatable
	// memory, it includes the eviction threshold and huge pages, as in the kubelet. 0 means the
	// capacity of the node.
	UnreservedMemory int64
}

// A MemoryProtection contains settings of the memory controller of cgroup v2 in bytes.
type MemoryProtection struct {
	Min int64 // memory.min: memory that is never reclaimed
	// Low is memory.low: memory that is reclaimed only if there is no other memory to reclaim. If
	// it is the constant unchanged, podd does not set it.
	Low int64
	// High is memory.high: if a cgroup uses more memory, its processes are throttled. If it is 0,
	// podd does not set it.
	High int64
}

// unchanged is the value of MemoryProtection.Low that makes podd keep memory.low.
const unchanged = -1

// unthrottled is the value of MemoryProtection.High that disables throttling.
const unthrottled = math.MaxInt64

// defaultPageSize is the size in bytes of a memory page on most hosts.
const defaultPageSize = 4096

// Files returns the content of the files of the memory controller by name.
func (p MemoryProtection) Files() map[string]string {
	files := map[string]string{"memory.min": strconv.FormatInt(p.Min, 10)}
	if p.Low != unchanged {
		files["memory.low"] = strconv.FormatInt(p.Low, 10)
	}
	switch p.High {
	case 0:
	case unthrottled:
		files["memory.high"] = "max"
	default:
		files["memory.high"] = strconv.FormatInt(p.High, 10)
	}
	return files
}

// atLeast returns p with each value raised to that of q if the value of q is higher.
func (p MemoryProtection) atLeast(q MemoryProtection) MemoryProtection {
	return MemoryProtection{max(p.Min, q.Min), max(p.Low, q.Low), max(p.High, q.High)}
}

// setMemoryQoS adds the memory protection of a container to r. It sets each value, even if there is no
// protection, so that a resize replaces the values with which the container was created.
func setMemoryQoS(r *cri.LinuxContainerResources, n Node, pod *v1.Pod, c *v1.Container) {
	if !n.UsesCgroupV2 {
		return
	}
	request, limit := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
	p := n.reservation(manifest.QoS(pod), request)
	if limit != 0 || !limitsPodMemory(pod) { // if only the pod limits the memory, the pod's cgroup throttles the container
		p.High = n.throttleAt(request, limit, cmp.Or(limit, n.MemoryQoS.UnreservedMemory, n.Capacity.Memory))
	}
	if r.Unified == nil {
		r.Unified = map[string]string{}
	}
	maps.Copy(r.Unified, p.Files())
}

// podMemoryProtection returns the memory protection of a pod's cgroup; nil on cgroup v1. If the pod
// itself has resources (spec.resources), its cgroup throttles the pod. Otherwise the cgroups of its
// containers throttle them.
func podMemoryProtection(n Node, pod *v1.Pod, requests, limits v1.ResourceList) *MemoryProtection {
	if !n.UsesCgroupV2 {
		return nil
	}
	request, limit := requests.Memory().Value(), limits.Memory().Value()
	p := n.reservation(manifest.QoS(pod), request)
	if resourcehelper.IsPodLevelResourcesSet(pod) && isLimited(pod, v1.ResourceMemory) {
		p.High = n.throttleAt(request, limit, limit)
	}
	return &p
}

// limitsPodMemory reports whether the pod itself has a memory limit.
func limitsPodMemory(pod *v1.Pod) bool {
	return pod.Spec.Resources != nil && !isUnlimited(pod.Spec.Resources.Limits, v1.ResourceMemory)
}

// reservation returns the protection of a memory request, without throttling.
func (n Node) reservation(class v1.PodQOSClass, request int64) MemoryProtection {
	switch {
	case !n.MemoryQoS.ReservesRequests:
		return MemoryProtection{High: unthrottled}
	case class == v1.PodQOSGuaranteed:
		return MemoryProtection{Min: request, High: unthrottled}
	}
	return MemoryProtection{Low: request, High: unthrottled}
}

// throttleAt returns memory.high for a memory request, a limit, and the memory that is available to
// the container or pod. If the request equals the limit, memory is not throttled, because the
// workload may use all the memory that it requests. The formula is that of KEP-2570.
func (n Node) throttleAt(request, limit, available int64) int64 {
	factor := n.MemoryQoS.ThrottlingFactor
	if factor == 0 || request == limit && request != 0 {
		return unthrottled
	}
	page := cmp.Or(n.PageSize, defaultPageSize)
	high := int64(math.Floor(float64(request)+float64(available-request)*factor)) / page * page
	if high <= request {
		return unthrottled
	}
	return high
}

// qosMemoryProtection returns the memory protection of the cgroup of all pods, and of the cgroup of
// Burstable pods. Both results are nil on cgroup v1. Each cgroup gets at least the protection of
// the cgroups in it, because the kernel limits the protection of a cgroup to that of its parent.
func (n Node) qosMemoryProtection(sum QOSRequests) (kubepods, burstable *MemoryProtection) {
	switch {
	case !n.UsesCgroupV2:
		return nil, nil
	case !n.MemoryQoS.ReservesRequests: // remove the protection that an earlier configuration may have set
		return &MemoryProtection{}, &MemoryProtection{}
	}
	return &MemoryProtection{Min: sum.GuaranteedMemory + sum.BurstableMemory, Low: sum.BurstableMemory}, &MemoryProtection{Low: sum.BurstableMemory}
}
