package runtimetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

func testResources(t *testing.T, f *fixture) {
	config := f.sandboxConfig("sized", 0)
	sandbox := f.runSandbox(config)
	containerConfig := f.containerConfig(config, "app", "sleep 1000")
	containerConfig.Linux.Resources = &api.LinuxContainerResources{
		CpuShares: 102, CpuPeriod: 100_000, CpuQuota: 20_000, MemoryLimitInBytes: 32 << 20,
	}
	id, err := f.Client.CreateContainer(f.ctx(), sandbox, containerConfig, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Client.StartContainer(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	before := f.containerStatus(id)
	for _, want := range []runtime.Resources{
		{CPUShares: 204, CPUPeriod: 100_000, CPUQuota: 40_000, MemoryLimitBytes: 64 << 20},
		{CPUShares: 51, CPUPeriod: 100_000, CPUQuota: 10_000, MemoryLimitBytes: 24 << 20},
	} {
		for range 2 { // a second call must change nothing
			err := f.Client.UpdateContainerResources(f.ctx(), id, &api.LinuxContainerResources{
				CpuShares: want.CPUShares, CpuPeriod: want.CPUPeriod, CpuQuota: want.CPUQuota, MemoryLimitInBytes: want.MemoryLimitBytes,
			})
			if err != nil {
				t.Fatalf("updating to %+v: %v", want, err)
			}
		}
		if got, err := f.Client.ContainerResources(f.ctx(), id); err != nil || got != nil && *got != want {
			t.Errorf("got %+v (error %v), want %+v", got, err, want)
		}
	}
	if after := f.containerStatus(id); after.State != runtime.Running || !after.StartedAt.Equal(before.StartedAt) {
		t.Errorf("after the updates: got state %s since %s; want state %s since %s, as before the updates", after.State, after.StartedAt, before.State, before.StartedAt)
	}
	if used, err := f.Client.ContainerMemory(f.ctx(), id); err != nil || used < 0 || used > 24<<20 {
		t.Errorf("got a memory usage of %d bytes and error %v; want between 0 and 24 MiB and no error", used, err)
	}
	for _, uids := range [][]types.UID{{"uid-sized"}, {"uid-other"}, {"uid-other", "uid-sized"}} {
		layers, err := f.Client.WritableLayers(f.ctx(), []string{f.instance()}, uids)
		of, want := layers["uid-sized"], 0
		if slices.Contains(uids, "uid-sized") {
			want = 1
		}
		if err != nil || len(layers) != want || len(of.Bytes) != want || of.Partial || of.Bytes["app"] < 0 {
			t.Errorf("writable layers of the pods %s: got %v (error %v), want %d", uids, layers, err, want)
		}
	}
	absent := strings.Repeat("f", 64)
	if err := f.Client.UpdateContainerResources(f.ctx(), absent, containerConfig.Linux.Resources); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("updating a container that does not exist: got error %v, want %v", err, runtime.ErrNotFound)
	}
	if _, err := f.Client.ContainerMemory(f.ctx(), absent); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("memory of a container that does not exist: got error %v, want %v", err, runtime.ErrNotFound)
	}
	if _, err := f.Client.ContainerResources(f.ctx(), absent); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("resources of a container that does not exist: got error %v, want %v", err, runtime.ErrNotFound)
	}
}

// testSandboxResources checks that the runtime accepts new resources of a sandbox, also repeatedly, and
// that only a runtime without the call returns an error.
func testSandboxResources(t *testing.T, f *fixture) {
	id := f.runSandbox(f.sandboxConfig("sized", 0))
	for _, memory := range []int64{64 << 20, 64 << 20, 24 << 20} {
		resources := &api.LinuxContainerResources{CpuShares: 204, CpuPeriod: 100_000, CpuQuota: 40_000, MemoryLimitInBytes: memory}
		err := f.Client.UpdatePodSandboxResources(f.ctx(), id, &api.LinuxContainerResources{}, resources)
		if err != nil && !errors.Is(err, runtime.ErrUnimplemented) {
			t.Errorf("updating the sandbox to %d bytes: got error %v, want none or %v", memory, err, runtime.ErrUnimplemented)
		}
	}
	absent := strings.Repeat("f", 64)
	err := f.Client.UpdatePodSandboxResources(f.ctx(), absent, nil, nil)
	if !errors.Is(err, runtime.ErrNotFound) && !errors.Is(err, runtime.ErrUnimplemented) {
		t.Errorf("updating a sandbox that does not exist: got error %v, want %v or %v", err, runtime.ErrNotFound, runtime.ErrUnimplemented)
	}
}
