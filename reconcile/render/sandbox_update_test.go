package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestSandboxUpdate(t *testing.T) {
	overhead := v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("64Mi")}
	limited := Cgroup{CPUShares: cpuShares(1250), CPUQuota: 225_000, CPUPeriod: quotaPeriod, Memory: 192 << 20}
	for name, tt := range map[string]struct {
		overhead            v1.ResourceList
		cgroup              Cgroup
		wantOver, wantOther *cri.LinuxContainerResources
	}{
		"no overhead": {
			nil, limited, &cri.LinuxContainerResources{},
			&cri.LinuxContainerResources{CpuShares: 1280, CpuQuota: 225_000, CpuPeriod: quotaPeriod, MemoryLimitInBytes: 192 << 20},
		},
		"overhead": {
			overhead, limited,
			&cri.LinuxContainerResources{CpuShares: 256, CpuQuota: 25_000, CpuPeriod: quotaPeriod, MemoryLimitInBytes: 64 << 20},
			&cri.LinuxContainerResources{CpuShares: 1024, CpuQuota: 200_000, CpuPeriod: quotaPeriod, MemoryLimitInBytes: 128 << 20},
		},
		"overhead, no limits": {
			overhead, Cgroup{CPUShares: cpuShares(350), CPUQuota: unlimitedQuota, CPUPeriod: quotaPeriod},
			&cri.LinuxContainerResources{CpuShares: 256, CpuQuota: 25_000, CpuPeriod: quotaPeriod, MemoryLimitInBytes: 64 << 20},
			&cri.LinuxContainerResources{CpuShares: 102, CpuQuota: -1, CpuPeriod: quotaPeriod},
		},
		"memory protection": {
			nil, Cgroup{CPUShares: 2, Protection: &MemoryProtection{Min: 1 << 20, High: unthrottled}}, &cri.LinuxContainerResources{},
			&cri.LinuxContainerResources{CpuShares: 2, Unified: map[string]string{"memory.min": "1048576", "memory.low": "0", "memory.high": "max"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			over, other := SandboxUpdate(Node{}, &v1.Pod{Spec: v1.PodSpec{Overhead: tt.overhead}}, tt.cgroup)
			if diff := cmp.Diff(tt.wantOver, over, protocmp.Transform()); diff != "" {
				t.Errorf("overhead (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantOther, other, protocmp.Transform()); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCgroup_Changes(t *testing.T) {
	current := Cgroup{CPUShares: 100, CPUQuota: 10_000, CPUPeriod: quotaPeriod, Memory: 64 << 20}
	for _, tt := range []struct {
		change  Cgroup
		merged  Cgroup
		changes bool
	}{
		{Cgroup{}, current, false},
		{current, current, false},
		{Cgroup{CPUShares: 200}, Cgroup{CPUShares: 200, CPUQuota: 10_000, CPUPeriod: quotaPeriod, Memory: 64 << 20}, true},
		{Cgroup{CPUQuota: -1}, Cgroup{CPUShares: 100, CPUQuota: -1, CPUPeriod: quotaPeriod, Memory: 64 << 20}, true},
		{Cgroup{CPUPeriod: 50_000}, Cgroup{CPUShares: 100, CPUQuota: 10_000, CPUPeriod: 50_000, Memory: 64 << 20}, true},
		{Cgroup{Memory: 32 << 20}, Cgroup{CPUShares: 100, CPUQuota: 10_000, CPUPeriod: quotaPeriod, Memory: 32 << 20}, true},
	} {
		if diff := cmp.Diff(tt.merged, tt.change.MergedInto(current)); diff != "" {
			t.Errorf("%+v merged into %+v (-want +got):\n%s", tt.change, current, diff)
		}
		if got := tt.change.Changes(current); got != tt.changes {
			t.Errorf("%+v changes %+v: got %t, want %t", tt.change, current, got, tt.changes)
		}
	}
}
