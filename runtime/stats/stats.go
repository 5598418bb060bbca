// Package stats measures the resource usage of the node and its pods. It takes samples of
// their cgroups, network and disks on demand, caches them for a moment, and computes a
// kubelet's summary from them.
//
//	caller ─▶ Sampler ─▶ cgroup files, /proc     ─▶ Sample ─┬─▶ Summarize ─▶ v1alpha1.Summary
//	              │                                         └─▶ Containers ─▶ cAdvisor's metrics
//	              └────▶ Options.Disk (at longer intervals) ─▶ Disk ─▶ Summarize
//
// Nothing runs between two calls: no goroutine, no timer. A rate needs two readings, so the
// last ones are stored; the first caller waits for a short interval. Disks are measured in
// rounds of limited duration, pod by pod; the next round starts with the pods that the last
// one did not measure.
//
// Cgroups are read with cAdvisor's library, as in the kubelet, for both versions of
// cgroups. The runtime's own figures (CRI ContainerStats) come from the same files through
// another process and are less complete. They are used if there is no cgroup to read, as
// for a container in a virtual machine. Only the runtime knows the usage of writable
// layers.
package stats

import (
	"time"

	"github.com/google/cadvisor/lib/model"
	"k8s.io/apimachinery/pkg/types"
)

// A Pod is a pod with at least one running container.
type Pod struct {
	Key types.NamespacedName // with its full name
	UID types.UID
	// Cgroups contains the possible paths of its cgroup, below the mount of a hierarchy;
	// the first that exists is used.
	Cgroups []string
	Sandbox string    // its CRI ID; "": none
	Started time.Time // may be zero
	// Containers contains the running containers.
	Containers []Container
}

// A Container is a running container.
type Container struct {
	ID, Name, Image string
	Started         time.Time
}

// A Sample is the usage at one time. It is immutable.
type Sample struct {
	At time.Time
	// Node is the whole node; never nil.
	Node *Cgroup
	// AllPods is the cgroup of all pods, Own podd's; nil if there is none.
	AllPods, Own *Cgroup
	// Classes contains the cgroups of QoS classes.
	Classes []*Cgroup
	Pods    []PodSample
}

// A PodSample is one pod of a Sample.
type PodSample struct {
	Pod
	Cgroup, Sandbox *Cgroup // nil: could not be read
	// Containers contains those that could be read, in the order of the Pod's.
	Containers []ContainerSample
}

// A ContainerSample is one container of a Sample.
type ContainerSample struct {
	Container
	*Cgroup
}

// A Cgroup is one cgroup of a Sample.
type Cgroup struct {
	Info *model.ContainerInfo // has exactly one element in Stats
	// NanoCores is the CPU usage since the previous reading, in nanoseconds per second;
	// nil: unknown.
	NanoCores *uint64
}

// Stats returns the statistics that were read.
func (c *Cgroup) Stats() *model.ContainerStats { return c.Info.Stats[0] }
