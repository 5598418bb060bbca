package server

import (
	"context"
	"time"

	"github.com/google/cadvisor/lib/model"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Meter measures the resource usage of the node and its pods. A result is measured when a method is
// called, and shared by all callers within a second. Callers must not modify it. The methods may be
// called concurrently.
type Meter interface {
	// Usage returns CPU and memory usage. It is cheap enough to be called every
	// second.
	Usage(ctx context.Context) (*Usage, error)
	// Summary returns the kubelet's summary, either with CPU and memory only or
	// with all data.
	Summary(ctx context.Context, cpuAndMemory bool) (*stats.Summary, error)
	// Containers returns the cgroups of the node, of pods and of containers in
	// cAdvisor's format, by name. All strings in them are valid UTF-8.
	Containers(ctx context.Context) (map[string]*model.ContainerInfo, error)
	// Machine returns the hardware of the node.
	Machine(ctx context.Context) (*model.MachineInfo, error)
}

// Usage is the resource usage of the node and its pods at one time.
type Usage struct {
	At   time.Time        `json:"at"`
	Node ResourceUsage    `json:"node"`
	Pods map[Key]PodUsage `json:"pods"`
}

// PodUsage is the resource usage of one pod.
type PodUsage struct {
	ResourceUsage
	// Containers has the running containers, by name.
	Containers map[string]ResourceUsage `json:"containers"`
}

// ResourceUsage is the usage of CPU and memory.
type ResourceUsage struct {
	// NanoCores is the CPU usage in billionths of a core, averaged over the last
	// seconds; nil until two measurements exist.
	NanoCores *uint64 `json:"nanoCores,omitempty"`
	// CoreNanoSeconds is the total CPU time.
	CoreNanoSeconds uint64 `json:"coreNanoSeconds"`
	// WorkingSetBytes is the memory that the kernel cannot reclaim, in bytes.
	WorkingSetBytes uint64 `json:"workingSet"`
}
