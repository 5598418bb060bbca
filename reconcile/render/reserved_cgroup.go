package render

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A ReservedCgroup is the cgroup of processes for which the node reserves resources (kubeReserved
// or systemReserved). podd limits the cgroup, but does not create it.
type ReservedCgroup struct {
	// Enforcement is the value of enforceNodeAllocatable that limits the cgroup, such as
	// "kube-reserved".
	Enforcement string
	// Path is the path of the cgroup as configured. With the driver systemd, it is the name or the
	// path of a slice; the suffix .slice is optional.
	Path string
	// Resources are the reserved resources.
	Resources v1.ResourceList
	// CompressibleOnly reports whether podd limits only the CPU. A process that gets too little CPU
	// becomes slower, but continues.
	CompressibleOnly bool
	// ProtectsMemory reports whether the kernel never reclaims the reserved memory. It has no
	// effect on cgroup v1, or if CompressibleOnly is true.
	ProtectsMemory bool
}

// Limits returns the cgroup with its limits. A resource that is not reserved is not limited. Huge
// pages cannot be reserved, so the limit of each page size is 0. The cgroup can use all CPUs. The
// kubelet sets the same limits (enforceExistingCgroup in pkg/kubelet/cm).
func (r ReservedCgroup) Limits(n Node) Cgroup {
	c := Cgroup{Path: r.driverPath(n.CgroupDriver), UsesSystemd: n.CgroupDriver == "systemd", CPUs: n.CPUs, HugePages: hugePages(n.HugePageSizes, nil)}
	if cpu, ok := r.Resources[v1.ResourceCPU]; ok {
		c.CPUShares = cpuShares(cpu.MilliValue())
	}
	if r.CompressibleOnly {
		return c
	}
	pids := r.Resources["pid"]
	c.Memory, c.Pids = r.Resources.Memory().Value(), pids.Value()
	if r.ProtectsMemory && n.UsesCgroupV2 && c.Memory > 0 {
		c.Protection = &MemoryProtection{Min: c.Memory, Low: unchanged}
	}
	return c
}

// driverPath returns the path of the cgroup in the form of the cgroup driver. For systemd, only the
// last element of r.Path matters, because the name of a slice determines its path.
func (r ReservedCgroup) driverPath(driver string) string {
	if driver != "systemd" {
		return path.Join("/", r.Path)
	}
	return slicePath(strings.Split(strings.TrimSuffix(path.Base(r.Path), ".slice"), "-"))
}
