package host

import (
	"fmt"
	"runtime"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/render"
)

// Resources returns the capacity of the node and the part of it that pods can
// request.
func Resources(cfg *config.Config) (capacity, allocatable render.Resources, err error) {
	memory, err := MemInfo("/proc/meminfo", "MemTotal")
	if err != nil {
		return capacity, allocatable, err
	}
	disk, err := DiskSize(cfg.RootDir)
	if err != nil {
		return capacity, allocatable, err
	}
	capacity = render.Resources{
		MilliCPU: int64(runtime.NumCPU()) * 1000, Memory: memory, EphemeralStorage: disk, Pids: MaxPids("/proc/sys/kernel"),
	}
	allocatable, err = Allocatable(cfg, capacity)
	return capacity, allocatable, err
}

// Allocatable returns the part of capacity that pods can request.
func Allocatable(cfg *config.Config, capacity render.Resources) (render.Resources, error) {
	var huge int64
	for _, n := range HugePages("/sys/kernel/mm/hugepages") {
		huge += n
	}
	return computeAllocatable(capacity, cfg.Reserved, cfg.Pressure, huge)
}

// podsLimit returns the limit of the cgroup of all pods, or zero if reservations are not
// enforced. Eviction thresholds and huge pages are not subtracted: pods may use more than
// they can request.
func podsLimit(cfg *config.Config, capacity render.Resources) render.Resources {
	if !cfg.EnforceReserved {
		return render.Resources{}
	}
	return unreserved(capacity, cfg.Reserved)
}

// unreserved returns capacity without the reserved resources. An amount that is unknown
// stays 0.
func unreserved(capacity render.Resources, reserved v1.ResourceList) render.Resources {
	left := capacity
	left.MilliCPU -= reserved.Cpu().MilliValue()
	left.Memory -= reserved.Memory().Value()
	left.EphemeralStorage = max(left.EphemeralStorage-reserved.StorageEphemeral().Value(), 0)
	if pid, ok := reserved["pid"]; ok && capacity.Pids > 0 {
		left.Pids = max(capacity.Pids-pid.Value(), 1)
	}
	return left
}

// computeAllocatable returns capacity without the reserved resources, the hard eviction
// thresholds of memory and disk, and huge pages.
func computeAllocatable(capacity render.Resources, reserved v1.ResourceList, pressure config.Pressure, huge int64) (render.Resources, error) {
	left := unreserved(capacity, reserved)
	memory, disk := pressure.Memory.Of(capacity.Memory), pressure.Nodefs.Of(capacity.EphemeralStorage)
	left.Memory -= memory + huge
	if left.MilliCPU <= 0 || left.Memory <= 0 {
		return left, fmt.Errorf("no CPU or memory is left for pods: kubeReserved and systemReserved (cpu %s, memory %s), evictionHard (memory.available %d MiB) and huge pages (%d MiB) take all of the node's %d CPUs or %d MiB",
			reserved.Cpu(), reserved.Memory(), memory>>20, huge>>20, capacity.MilliCPU/1000, capacity.Memory>>20)
	}
	left.EphemeralStorage = max(left.EphemeralStorage-disk, 0)
	if left.EphemeralStorage == 0 && capacity.EphemeralStorage > 0 {
		return left, fmt.Errorf("no disk space is left for pods: kubeReserved and systemReserved (ephemeral-storage %s) and evictionHard (nodefs.available %d MiB) take all of the disk's %d MiB",
			reserved.StorageEphemeral(), disk>>20, capacity.EphemeralStorage>>20)
	}
	return left, nil
}
