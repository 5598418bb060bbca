// Package stats measures the resource usage of the node and its pods. On demand, it takes
// samples of cgroups, network and disks, caches them for a moment, and computes the
// kubelet's summary from them.
//
//	caller ─▶ Sampler ─▶ cgroup files, /proc     ─▶ Sample ─┬─▶ Summarize ─▶ v1alpha1.Summary
//	              │                                         └─▶ Containers ─▶ cAdvisor's metrics
//	              └────▶ Options.MeasureDisk (at longer intervals) ─▶ Disk ─▶ Summarize
//
// Between two calls, no timer runs, and no goroutine except for a measurement of disks that has not
// finished. Since a rate needs two readings, the last readings are stored; the first caller waits
// for a short interval. Disks are measured pod by pod, in rounds of limited duration. The next
// round begins with the pods that the last round did not reach.
//
// Cgroups of both versions are read with cAdvisor's library, as in the kubelet. The values that the
// runtime reports (CRI ContainerStats) come from the same files and are less complete. They are
// used only if there is no cgroup to read, for example for a container in a virtual machine. Only
// the runtime knows the usage of writable layers.
package stats

import (
	"time"

	"github.com/google/cadvisor/lib/model"
	"k8s.io/apimachinery/pkg/types"
)

// A Pod is a pod with at least one running container.
type Pod struct {
	Key types.NamespacedName // the name of a static pod ends in the name of the node
	UID types.UID
	// Cgroups contains the possible paths of the pod's cgroup, below the mount of a
	// hierarchy. The first path that exists is used.
	Cgroups   []string
	SandboxID string    // CRI ID of the sandbox; "" if there is none
	Started   time.Time // zero if the time is unknown
	// Containers contains only running containers.
	Containers []Container
}

// A Container is a running container.
type Container struct {
	ID, Name, Image string
	Started         time.Time
}

// A Sample is the resource usage at one time. It is immutable.
type Sample struct {
	At time.Time
	// Node is the root cgroup. It is never nil.
	Node *Cgroup
	// AllPodsCgroup is the cgroup of all pods, and OwnCgroup is the cgroup of podd.
	// RuntimeCgroup and SystemCgroup are the cgroups with these names in Options. A field is
	// nil if its cgroup could not be read.
	AllPodsCgroup, OwnCgroup, RuntimeCgroup, SystemCgroup *Cgroup
	// QoSClassCgroups contains the cgroups of the QoS classes.
	QoSClassCgroups []*Cgroup
	Pods            []PodSample
	// lacksRuntimeUsage reports whether the runtime failed to report the usage of containers without
	// a cgroup.
	lacksRuntimeUsage bool
}

// A PodSample is the usage of one pod in a Sample.
type PodSample struct {
	Pod
	Cgroup, Sandbox *Cgroup // nil if it could not be read
	// Containers contains the containers that could be read, in the order of Pod.Containers.
	Containers []ContainerSample
}

// A ContainerSample is the usage of one container in a Sample.
type ContainerSample struct {
	Container
	*Cgroup
}

// A Cgroup is the usage of one cgroup in a Sample.
type Cgroup struct {
	Info *model.ContainerInfo // its Stats field has exactly one element
	// NanoCores is the CPU usage since the previous reading, in nanoseconds per second. It
	// is nil if unknown.
	NanoCores *uint64
	// HasPressure reports whether the cgroup has pressure stall information, as those of version 2 have.
	// All values are zero if the kernel was built or booted without it.
	HasPressure bool
}

// Stats returns the statistics of the cgroup at the time of the sample.
func (c *Cgroup) Stats() *model.ContainerStats { return c.Info.Stats[0] }
