// Package render creates CRI configs: from a desired pod and values about the node, it
// renders the messages for RunPodSandbox and CreateContainer.
//
//	manifest.Pod + Node ────────────────▶ Sandbox   ▶ PodSandboxConfig
//	ContainerInput (pod, container, …) ─▶ Container ▶ ContainerConfig
//
// Every function is pure: the same input results in the same message, and the input is not
// modified. If a caller changes a message, the input does not change. The values are those that the
// kubelet of Kubernetes sends, because runtimes, log agents and crictl depend on them. podd also
// adds its own labels and annotations. TestKubelet compares the messages with messages that a
// kubelet has sent, and testdata/render/fields.txt lists all fields of a pod with their tests.
//
// Errors name the container and the variable, volume or field, never a value.
package render

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
	"podd/runtime/logs"
)

// A Node contains the values of the node and of podd's configuration that rendering needs. The zero
// value of a field is valid unless its comment states otherwise.
type Node struct {
	// Name is the node's name, as in spec.nodeName.
	Name string
	// Handlers contains the features of the runtime's handlers by name.
	Handlers map[string]runtime.Handler
	// ImageVolumeSupport describes which image volumes the runtime supports; the zero value means
	// none.
	ImageVolumeSupport ImageVolumeSupport
	// SupportsCDI reports whether the runtime supports CDI devices.
	SupportsCDI bool
	// HostIPs contains the addresses of the node: at most one address of each family, the primary
	// address first. These addresses are status.hostIPs of all pods, and status.podIPs of
	// host-network pods.
	HostIPs []string
	// Capacity contains the resources of the whole host. The oom_score_adj of a container depends
	// on Capacity.Memory. If Capacity.Memory is 0, a Burstable container has the score of a
	// container without a memory request.
	Capacity Resources
	// Allocatable contains the resources that are available to pods. resourceFieldRef uses them if
	// a container has no limit. If a field is 0, the value in Capacity is used.
	Allocatable Resources
	// AllPodsLimit is the limit of all pods together. If a field is 0, there is no limit of this
	// resource. The field EphemeralStorage has no effect.
	AllPodsLimit Resources
	// InstanceID is the ID of this podd, for runtime.LabelInstance; "" means no label.
	InstanceID string
	// AdoptedInstanceIDs contains the IDs of instances that this podd took over. Existing
	// containers may have one of these IDs as their label. New containers have InstanceID.
	AdoptedInstanceIDs []string
	// LogsDir is the directory of the log directories of all pods; "" means /var/log/pods. Use
	// PodLogDir instead of LogsDir, which may be "".
	LogsDir string

	// WithoutPodCgroups reports whether podd creates no cgroups of pods and QoS classes, so that
	// the runtime chooses the cgroups of containers.
	WithoutPodCgroups bool
	// CgroupRoot is the parent cgroup of kubepods in cgroupfs form; "" means /.
	CgroupRoot string
	// CgroupDriver is "systemd" or "cgroupfs"; any other value means cgroupfs.
	CgroupDriver string
	// UsesCgroupV2 reports whether the host has only the unified hierarchy.
	UsesCgroupV2 bool
	// SupportsSwapLimits reports whether the kernel can limit swap. If it is true, a container gets
	// its share of SwapBytes, which may be 0.
	SupportsSwapLimits bool
	// SwapBytes is the number of bytes of swap that Burstable pods share. It has an effect only if
	// UsesCgroupV2 is true.
	SwapBytes int64
	// MemoryQoS configures the protection and throttling of memory on cgroup v2.
	MemoryQoS MemoryQoS
	// SingleProcessOOMKill reports whether an out-of-memory kill ends one process instead of all
	// processes of the container. On cgroup v1, such a kill always ends one process.
	SingleProcessOOMKill bool
	// CPUQuota configures how CPU limits are enforced.
	CPUQuota CPUQuota
	// CPUs contains the CPUs of the host that are online, in the format of the kernel, such as
	// "0-3,6". The pods and the reserved cgroups can use them. If CPUs is "", podd does not set the
	// CPUs of cgroups.
	CPUs string
	// PageSize is the size of a memory page in bytes; 0 means 4096.
	PageSize int64
	// PodPIDsLimit is the maximum number of processes of a pod; 0 or less means no limit.
	PodPIDsLimit int64
	// HugePageSizes contains the huge page sizes of the host, such as "2MB" and "1GB". podd limits
	// the use of each size. If the container requests no pages of a size, the limit is 0.
	HugePageSizes []string

	// DNS is the node's resolv.conf.
	DNS DNS
	// ClusterDNS contains the name servers of ClusterFirst pods. If it is empty, ClusterFirst pods
	// use the field DNS.
	ClusterDNS []string
	// ClusterDomain is the DNS domain of services, such as "cluster.local", or "".
	ClusterDomain string

	// RuntimeClasses maps the names of runtime classes to handlers. It contains only classes whose
	// handler has a different name.
	RuntimeClasses map[string]string

	// DefaultSysctls contains the sysctls that are set in each pod. A sysctl is not set if the pod
	// sets it, or if the pod uses the host's namespace for it. The names have dots between their
	// parts.
	DefaultSysctls map[string]string
	// SeccompDefault reports whether containers that specify no seccomp profile get the profile
	// RuntimeDefault.
	SeccompDefault bool
	// SeccompDir is the directory of Localhost seccomp profiles.
	SeccompDir string
	// SELinuxEnabled reports whether SELinux is enabled, so that the runtime must relabel volumes; see
	// mustRelabel.
	SELinuxEnabled bool
}

// Resources are amounts of resources of a node; 0 means unknown.
type Resources struct {
	MilliCPU         int64
	Memory           int64 // bytes
	EphemeralStorage int64 // bytes
	Pids             int64
}

// PodLogDir returns the path of a pod's log directory.
func (n Node) PodLogDir(key types.NamespacedName, uid types.UID) string {
	return logs.Dir(cmp.Or(n.LogsDir, "/var/log/pods"), key, uid)
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

// Handler returns the features of the handler for a pod's runtimeClassName, or the zero
// value if the runtime does not report the handler.
func (n Node) Handler(p *manifest.Pod) runtime.Handler {
	return n.Handlers[p.RuntimeHandler(n.RuntimeClasses)]
}

// OwnInstances returns the values of runtime.LabelInstance on this podd's containers.
func (n Node) OwnInstances() []string { return append([]string{n.InstanceID}, n.AdoptedInstanceIDs...) }
