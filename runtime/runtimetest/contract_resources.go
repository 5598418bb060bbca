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

func testResources(t *testing.T, b *bench) {
	config := b.sandboxConfig("sized", 0)
	sandbox := b.run(config)
	made := b.containerConfig(config, "app", "sleep 1000")
	made.Linux.Resources = &api.LinuxContainerResources{
		CpuShares: 102, CpuPeriod: 100_000, CpuQuota: 20_000, MemoryLimitInBytes: 32 << 20,
	}
	id, err := b.Client.CreateContainer(b.ctx(), sandbox, made, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Client.StartContainer(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	before := b.status(id)
	for _, want := range []runtime.Resources{
		{CPUShares: 204, CPUPeriod: 100_000, CPUQuota: 40_000, Memory: 64 << 20},
		{CPUShares: 51, CPUPeriod: 100_000, CPUQuota: 10_000, Memory: 24 << 20},
	} {
		for range 2 { // a second call must change nothing
			err := b.Client.UpdateContainerResources(b.ctx(), id, &api.LinuxContainerResources{
				CpuShares: want.CPUShares, CpuPeriod: want.CPUPeriod, CpuQuota: want.CPUQuota, MemoryLimitInBytes: want.Memory,
			})
			if err != nil {
				t.Fatalf("updating to %+v: %v", want, err)
			}
		}
		if got, err := b.Client.ContainerResources(b.ctx(), id); err != nil || got != nil && *got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if after := b.status(id); after.State != runtime.Running || !after.StartedAt.Equal(before.StartedAt) {
		t.Errorf("before: %s since %s; got %s since %s, want no change", before.State, before.StartedAt, after.State, after.StartedAt)
	}
	if used, err := b.Client.ContainerMemory(b.ctx(), id); err != nil || used < 0 || used > 24<<20 {
		t.Errorf("got a memory usage of %d bytes, %v", used, err)
	}
	for _, uids := range [][]types.UID{{"uid-sized"}, {"uid-other"}, {"uid-other", "uid-sized"}} {
		layers, err := b.Client.WritableLayers(b.ctx(), []string{b.instance()}, uids)
		of, want := layers["uid-sized"], 0
		if slices.Contains(uids, "uid-sized") {
			want = 1
		}
		if err != nil || len(layers) != want || len(of.Bytes) != want || of.Partial || of.Bytes["app"] < 0 {
			t.Errorf("%s: got writable layers %v, %v", uids, layers, err)
		}
	}
	absent := strings.Repeat("f", 64)
	if err := b.Client.UpdateContainerResources(b.ctx(), absent, made.Linux.Resources); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("updating no container: got %v, want %v", err, runtime.ErrNotFound)
	}
	if _, err := b.Client.ContainerMemory(b.ctx(), absent); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("memory of no container: got %v, want %v", err, runtime.ErrNotFound)
	}
	if _, err := b.Client.ContainerResources(b.ctx(), absent); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("resources of no container: got %v, want %v", err, runtime.ErrNotFound)
	}
}
