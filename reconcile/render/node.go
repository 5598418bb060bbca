// Package render makes CRI configs: a wanted pod plus values about the node in,
// the message for RunPodSandbox or CreateContainer out.
//
//	manifest.Pod + Node ────────────────▶ Sandbox   ▶ PodSandboxConfig
//	ContainerInput (pod, container, …) ─▶ Container ▶ ContainerConfig
//
// Every function is pure: the same input gives the same message, no input is
// written to, and the messages share no memory with it that a caller could
// change by accident. Field values are those that a kubelet of Kubernetes 1.34
// sends, so that runtimes, log agents and crictl see what they know; podd's own
// labels and annotations come on top. TestKubelet compares with what a kubelet
// sent, and testdata/render/fields.txt has all fields of a pod with their tests.
//
// Errors name the container and the variable, volume or field, never a value.
package render

import (
	"podd/manifest"
	"podd/runtime"
)

// Node is what rendering needs to know of the machine and of podd's settings.
// The zero value of each field is usable as its comment says.
type Node struct {
	// Name is the node's name, as in spec.nodeName.
	Name string
	// Handlers are what the runtime says of its handlers, by name.
	Handlers map[string]runtime.Handler
	// Images is what the runtime serves of volumes that are images; zero: none.
	Images ImageVolumes
	// CDI says that the runtime gives containers the CDI devices that are named.
	CDI bool
	// HostIPs of the node, the primary first: status.hostIPs, and the pod's own
	// addresses for host-network pods. At most one a family.
	HostIPs []string
	// Capacity is the whole machine; its Memory scales oom_score_adj. With zero
	// memory a Burstable container counts as one that asked for none.
	Capacity Resources
	// Allocatable is what pods may share; it stands in for limits nobody wrote
	// in resourceFieldRef. Zero fields mean those of Capacity.
	Allocatable Resources
	// PodsLimit is the limit of all pods together, by whatever is set; of disk there
	// is none.
	PodsLimit Resources
	// Instance is the id of this podd, for runtime.LabelInstance; "" writes no
	// such label.
	Instance string
	// LogsDir holds the pods' log directories; "" means /var/log/pods.
	LogsDir string

	// CgroupRoot is the cgroup above kubepods, in cgroupfs form; "" means /.
	CgroupRoot string
	// CgroupDriver is "systemd" or "cgroupfs"; anything else means cgroupfs.
	CgroupDriver string
	// CgroupV2 says that the machine has the unified hierarchy only.
	CgroupV2 bool
	// SingleProcessOOMKill leaves the other processes of a container alive when
	// the kernel kills one for memory; only with CgroupV2.
	SingleProcessOOMKill bool
	// SwapLimits says that the kernel can limit swap; containers then get none,
	// or their share of Swap.
	SwapLimits bool
	// Swap is how many bytes of swap Burstable pods share; only with CgroupV2.
	Swap int64
	// NoCPUQuota leaves cpu limits unenforced.
	NoCPUQuota bool
	// PodPids is how many processes a pod may have; 0 or less: no limit.
	PodPids int64
	// HugePageSizes of the machine ("2MB", "1GB"); each is limited, to 0 unless
	// the container asks.
	HugePageSizes []string

	// DNS is the node's resolv.conf.
	DNS DNS
	// ClusterDNS are the name servers of ClusterFirst pods; empty: such pods
	// use DNS.
	ClusterDNS []string
	// ClusterDomain is the DNS domain of services ("cluster.local"), or "".
	ClusterDomain string

	// RuntimeClasses are the runtime's handlers of classes that are named
	// otherwise.
	RuntimeClasses map[string]string

	// SeccompDefault gives RuntimeDefault to containers that say nothing.
	SeccompDefault bool
	// SeccompDir is where Localhost seccomp profiles are.
	SeccompDir string
	// SELinux says that it is enabled: volumes podd makes are relabelled.
	SELinux bool
	// MaskedPaths are masked in addition to the usual ones of /proc and /sys:
	// those that exist on this machine only, like the cpus' thermal_throttle.
	MaskedPaths []string
}

// Resources are amounts of a machine; 0 is unknown.
type Resources struct {
	MilliCPU         int64
	Memory           int64 // bytes
	EphemeralStorage int64 // bytes
	Pids             int64
}

func (n Node) logsDir() string {
	if n.LogsDir == "" {
		return "/var/log/pods"
	}
	return n.LogsDir
}

func (n Node) allocatable() Resources {
	r := n.Allocatable
	if r.MilliCPU == 0 {
		r.MilliCPU = n.Capacity.MilliCPU
	}
	if r.Memory == 0 {
		r.Memory = n.Capacity.Memory
	}
	if r.EphemeralStorage == 0 {
		r.EphemeralStorage = n.Capacity.EphemeralStorage
	}
	return r
}

// Handler is what the runtime says of the handler that a pod's runtimeClassName
// stands for; zero: nothing.
func (n Node) Handler(p *manifest.Pod) runtime.Handler {
	return n.Handlers[p.RuntimeHandler(n.RuntimeClasses)]
}
