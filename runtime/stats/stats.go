// Package stats is what the machine and its pods use: samples of their cgroups,
// network and disks, made when somebody asks and kept for a moment, and the
// arithmetic that makes a kubelet's summary of them.
//
//	who asks ─▶ Sampler ─▶ cgroup files, /proc     ─▶ Sample ─┬─▶ Summarize ─▶ v1alpha1.Summary
//	                │                                         └─▶ Containers ─▶ cAdvisor's metrics
//	                └────▶ Options.Disk (at longer intervals) ─▶ Disk ─▶ Summarize
//
// Nothing runs between two questions: no goroutine, no timer. A rate needs two
// readings, so the last ones are kept; who asks for the first time waits for a
// short one to be made. Disks are measured in rounds of a bounded time, pod by pod;
// the next round begins with the pods that the last one did not get to.
//
// Cgroups are read with cAdvisor's library, as the kubelet does, under both
// versions of cgroups. The runtime's own figures (CRI ContainerStats) come from
// the same files through a process more, know less, and are taken where there is
// no cgroup to read, as of a container in a virtual machine; how much containers
// wrote to their own layers only the runtime knows.
package stats

import (
	"time"

	"github.com/google/cadvisor/lib/model"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is one of which something runs.
type Pod struct {
	Key types.NamespacedName // with its full name
	UID types.UID
	// Cgroups are the places where its cgroup may be, as paths below the mount of
	// a hierarchy; the first that is there is it.
	Cgroups []string
	Sandbox string    // its CRI id; "": none
	Started time.Time // may be zero
	// Containers are those that run.
	Containers []Container
}

// Container is one that runs.
type Container struct {
	ID, Name, Image string
	Started         time.Time
}

// Sample is what all use at one moment. It is immutable.
type Sample struct {
	At time.Time
	// Node is the machine itself; never nil.
	Node *Cgroup
	// AllPods is the cgroup of pods, Own podd's; nil where there is none.
	AllPods, Own *Cgroup
	// Classes are the cgroups of QoS classes.
	Classes []*Cgroup
	Pods    []PodSample
}

// PodSample is one pod of a Sample.
type PodSample struct {
	Pod
	Cgroup, Sandbox *Cgroup // nil: could not be read
	// Containers are those that could be read, in the order of the Pod's.
	Containers []ContainerSample
}

// ContainerSample is one container of a Sample.
type ContainerSample struct {
	Container
	*Cgroup
}

// Cgroup is one cgroup of a Sample.
type Cgroup struct {
	Info *model.ContainerInfo // has one of Stats
	// NanoCores is the processor time a second, in billionths, that it used
	// since the reading before; nil: not known.
	NanoCores *uint64
}

// Stats are the figures that were read.
func (c *Cgroup) Stats() *model.ContainerStats { return c.Info.Stats[0] }
