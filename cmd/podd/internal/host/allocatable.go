package host

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/node"
	"podd/reconcile/render"
)

// ReadResources returns the capacity of the node, and the allocatable resources, which are the part
// of the capacity that pods can request.
func ReadResources(cfg *config.Config) (capacity, allocatable render.Resources, err error) {
	memory, err := node.ReadMemInfo("MemTotal")
	if err != nil {
		return capacity, allocatable, err
	}
	disk, err := node.ReadDiskSize(cfg.RootDir)
	if err != nil {
		return capacity, allocatable, err
	}
	capacity = render.Resources{
		MilliCPU: node.CountCPUs() * 1000, Memory: memory, EphemeralStorage: disk, Pids: node.ReadMaxPids(),
	}
	allocatable, err = Allocatable(&cfg.Resources, capacity)
	return capacity, allocatable, err
}

// Allocatable returns the part of capacity that pods can request. It returns an error if no
// CPU, memory or disk space remains for pods.
func Allocatable(cfg *config.Resources, capacity render.Resources) (render.Resources, error) {
	policy := cfg.Eviction
	if cfg.IgnoreEvictionInAllocatable {
		policy = pressure.Policy{}
	}
	return computeAllocatable(capacity, cfg.Reserved, policy, node.ReadHugePageBytes())
}

// podsLimit returns the limits of the cgroup of all pods. Unlike allocatable resources, the limits
// include eviction thresholds and huge pages. So all pods together can use more than they can request.
// If reservations are not enforced, the limits are the whole capacity. As in the kubelet, these limits
// replace the limits of an earlier configuration, and give the cgroup a CPU weight, because the default
// weight is too low for all pods.
func podsLimit(cfg *config.Resources, capacity render.Resources) render.Resources {
	if !cfg.EnforceReserved {
		return capacity
	}
	return subtractReserved(capacity, cfg.Reserved)
}

// ReservedCgroups returns the cgroups that are limited to the resources that are reserved for them.
func ReservedCgroups(cfg *config.Resources) (cgroups []render.ReservedCgroup) {
	for _, c := range cfg.ReservedCgroups {
		cgroups = append(cgroups, render.ReservedCgroup(c))
	}
	return cgroups
}

// subtractReserved returns capacity without the reserved resources. An unknown amount, which is
// 0, remains 0.
func subtractReserved(capacity render.Resources, reserved v1.ResourceList) render.Resources {
	remaining := capacity
	remaining.MilliCPU -= reserved.Cpu().MilliValue()
	remaining.Memory -= reserved.Memory().Value()
	remaining.EphemeralStorage = max(remaining.EphemeralStorage-reserved.StorageEphemeral().Value(), 0)
	if pid, ok := reserved["pid"]; ok && capacity.Pids > 0 {
		remaining.Pids = max(capacity.Pids-pid.Value(), 1)
	}
	return remaining
}

// computeAllocatable returns capacity without the reserved resources, the evictionHard
// thresholds of memory and disk, and huge pages. hugePages is the size of all huge pages in
// bytes.
func computeAllocatable(capacity render.Resources, reserved v1.ResourceList, policy pressure.Policy, hugePages int64) (render.Resources, error) {
	allocatable := subtractReserved(capacity, reserved)
	memory, disk := policy.Hard(pressure.MemoryAvailable).AmountFor(capacity.Memory), policy.Hard(pressure.NodefsAvailable).AmountFor(capacity.EphemeralStorage)
	allocatable.Memory -= memory + hugePages
	if allocatable.MilliCPU <= 0 || allocatable.Memory <= 0 {
		return allocatable, fmt.Errorf("no CPU or memory is left for pods: kubeReserved and systemReserved (cpu %s, memory %s), evictionHard (memory.available %d MiB) and huge pages (%d MiB) take all of the node's %d CPUs or %d MiB",
			reserved.Cpu(), reserved.Memory(), memory>>20, hugePages>>20, capacity.MilliCPU/1000, capacity.Memory>>20)
	}
	allocatable.EphemeralStorage = max(allocatable.EphemeralStorage-disk, 0)
	if allocatable.EphemeralStorage == 0 && capacity.EphemeralStorage > 0 {
		return allocatable, fmt.Errorf("no disk space is left for pods: kubeReserved and systemReserved (ephemeral-storage %s) and evictionHard (nodefs.available %d MiB) take all of the disk's %d MiB",
			reserved.StorageEphemeral(), disk>>20, capacity.EphemeralStorage>>20)
	}
	return allocatable, nil
}
