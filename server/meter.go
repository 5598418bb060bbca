package server

import (
	"context"
	"time"

	"github.com/google/cadvisor/lib/model"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Meter tells what the node and its pods use. Each answer is made when it is
// asked for and shared by all who ask within a second; it must not be written
// to. Methods may be called concurrently.
type Meter interface {
	// Usage is processor and memory, cheap enough to be asked every second.
	Usage(ctx context.Context) (*Usage, error)
	// Summary is a kubelet's; of processor and memory alone, or of everything.
	Summary(ctx context.Context, cpuAndMemory bool) (*stats.Summary, error)
	// Containers are the cgroups of the node, of pods and of containers, as
	// cAdvisor knows them, by name. All text in them is UTF-8.
	Containers(ctx context.Context) (map[string]*model.ContainerInfo, error)
	// Machine is what the node is made of.
	Machine(ctx context.Context) (*model.MachineInfo, error)
}

// Usage is what the node and its pods use at one moment.
type Usage struct {
	At   time.Time        `json:"at"`
	Node Amounts          `json:"node"`
	Pods map[Key]PodUsage `json:"pods"`
}

// PodUsage is what one pod uses.
type PodUsage struct {
	Amounts
	// Containers are those that run, by name.
	Containers map[string]Amounts `json:"containers"`
}

// Amounts are of processor and memory.
type Amounts struct {
	// NanoCores is the processor time a second, in billionths, over the last
	// seconds; nil: not known yet.
	NanoCores *uint64 `json:"nanoCores,omitempty"`
	// CoreNanoSeconds is the processor time so far.
	CoreNanoSeconds uint64 `json:"coreNanoSeconds"`
	// WorkingSet is the memory that the kernel cannot take back, in bytes.
	WorkingSet uint64 `json:"workingSet"`
}
