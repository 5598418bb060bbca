package main

import (
	"fmt"
	"runtime"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/render"
)

// amounts are what the machine has, and what of it is for pods.
func amounts(cfg *config.Config) (capacity, allocatable render.Resources, err error) {
	memory, err := memInfo("/proc/meminfo", "MemTotal")
	if err != nil {
		return capacity, allocatable, err
	}
	disk, err := diskSize(cfg.RootDir)
	if err != nil {
		return capacity, allocatable, err
	}
	capacity = render.Resources{
		MilliCPU: int64(runtime.NumCPU()) * 1000, Memory: memory, EphemeralStorage: disk, Pids: mostPids("/proc/sys/kernel"),
	}
	allocatable, err = leftOf(cfg, capacity)
	return capacity, allocatable, err
}

// leftOf is what of a machine is for pods.
func leftOf(cfg *config.Config, capacity render.Resources) (render.Resources, error) {
	var huge int64
	for _, n := range hugePages("/sys/kernel/mm/hugepages") {
		huge += n
	}
	return allocatableOf(capacity, cfg.Reserved, cfg.Pressure, huge)
}

// podsLimit is the limit of all pods together. What is left below a threshold, and
// huge pages, are not taken from it: pods may use more than they can ask for.
func podsLimit(cfg *config.Config, capacity render.Resources) render.Resources {
	if !cfg.EnforceReserved {
		return render.Resources{}
	}
	return unreserved(capacity, cfg.Reserved)
}

// unreserved is what is not kept from pods; 0 of what is not known.
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

// allocatableOf is what pods may ask for: of what is not reserved neither that which is
// to be left, of memory and disk, nor huge pages.
func allocatableOf(capacity render.Resources, reserved v1.ResourceList, pressure config.Pressure, huge int64) (render.Resources, error) {
	left := unreserved(capacity, reserved)
	memory, disk := pressure.Memory.Of(capacity.Memory), pressure.Nodefs.Of(capacity.EphemeralStorage)
	left.Memory -= memory + huge
	if left.MilliCPU <= 0 || left.Memory <= 0 {
		return left, fmt.Errorf("kubeReserved and systemReserved, cpu %s and memory %s, evictionHard of %d MiB, and huge pages of %d MiB leave nothing for pods on a machine of %d cpus and %d MiB",
			reserved.Cpu(), reserved.Memory(), memory>>20, huge>>20, capacity.MilliCPU/1000, capacity.Memory>>20)
	}
	left.EphemeralStorage = max(left.EphemeralStorage-disk, 0)
	if left.EphemeralStorage == 0 && capacity.EphemeralStorage > 0 {
		return left, fmt.Errorf("kubeReserved and systemReserved, ephemeral-storage %s, and evictionHard of %d MiB leave nothing for pods on a disk of %d MiB",
			reserved.StorageEphemeral(), disk>>20, capacity.EphemeralStorage>>20)
	}
	return left, nil
}
