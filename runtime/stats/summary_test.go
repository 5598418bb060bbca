package stats

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/cadvisor/lib/model"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
	"podd/runtime/runtimetest/golden"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fixed returns a cgroup whose values are fixed multiples of n, so that they are different in the summary.
func fixed(name string, n uint64) *Cgroup {
	rate := n * 1e6
	return &Cgroup{NanoCores: &rate, Info: &model.ContainerInfo{
		ContainerReference: model.ContainerReference{Name: name},
		Spec: model.ContainerSpec{
			CreationTime: noon.Add(-time.Hour), HasCpu: true, HasMemory: true,
			Memory: model.MemorySpec{Limit: 1000 * n, SwapLimit: maxMemoryLimit + 1},
		},
		Stats: []*model.ContainerStats{{
			Timestamp: noon.Add(time.Duration(n) * time.Second),
			Cpu:       &model.CpuStats{Usage: model.CpuUsage{Total: n * 1e9}},
			Memory: &model.MemoryStats{
				Usage: 500 * n, WorkingSet: 400 * n, RSS: 300 * n, Swap: n,
				ContainerData: model.MemoryStatsMemoryData{Pgfault: 10 * n, Pgmajfault: n},
			},
			Processes: &model.ProcessStats{ProcessCount: n},
		}},
	}}
}

// withPressure returns c with pressure information, which only cgroup version 2 has. Memory was never
// short.
func withPressure(c *Cgroup) *Cgroup {
	c.HasPressure = true
	p := model.PSIStats{Full: model.PSIData{Total: 1, Avg10: 0.1, Avg60: 0.2, Avg300: 0.3}, Some: model.PSIData{Total: 5}}
	c.Stats().Cpu.PSI, c.Stats().DiskIo = p, &model.DiskIoStats{PSI: p}
	return c
}

func fixedFS(used uint64, space *Space) Filesystem {
	inodes := used / 100
	return Filesystem{UsedBytes: &used, InodesUsed: &inodes, Space: space, At: noon}
}

func fixedSample() *Sample {
	sandbox := fixed("/kubepods/podu1/s1", 2)
	sandbox.Info.Spec.HasNetwork = true
	sandbox.Stats().Network = &model.NetworkStats{Interfaces: []model.InterfaceStats{
		{Name: "eth0", RxBytes: 11, RxErrors: 1, TxBytes: 12, TxErrors: 2}, {Name: "eth1", RxBytes: 13},
	}}
	box := Pod{Key: types.NamespacedName{Namespace: "default", Name: "box-n1"}, UID: "u2", Started: noon.Add(-time.Minute)}
	return &Sample{
		At: noon, Node: fixed("/", 100), AllPodsCgroup: fixed("/kubepods", 50), OwnCgroup: fixed("/system.slice/podd.service", 3),
		Pods: []PodSample{
			{
				Pod:    Pod{Key: types.NamespacedName{Namespace: "default", Name: "web-n1"}, UID: "u1", SandboxID: "s1"},
				Cgroup: fixed("/kubepods/podu1", 20), Sandbox: sandbox,
				Containers: []ContainerSample{
					{Container{ID: "c1", Name: "app", Image: "web:1"}, withPressure(fixed("/kubepods/podu1/c1", 10))},
					{Container{ID: "c2", Name: "gone"}, nil},
				},
			},
			{Pod: box, Containers: []ContainerSample{{
				Container{ID: "c3", Name: "inside", Started: noon.Add(-time.Minute)},
				cgroupFromRuntime("/c3", runtime.Usage{At: noon, CPUNanoseconds: 5e9, MemoryBytes: 50, WorkingSetBytes: 40, RSSBytes: 30}),
			}}},
		},
	}
}

func fixedDisk() *Disk {
	space := &Space{CapacityBytes: 1 << 30, AvailableBytes: 1 << 29, Inodes: 1000, InodesFree: 400}
	images, files := fixedFS(7000, space), fixedFS(100, space)
	return &Disk{
		At: noon, Root: fixedFS(1<<29, space), Images: &images, MaxPIDs: 32768, ProcessCount: 123,
		Pods: map[types.UID]PodDisk{"u1": {
			Logs: map[string]Filesystem{"app": fixedFS(1000, space)}, Layers: map[string]Filesystem{"c1": fixedFS(2000, nil)},
			Volumes: []Volume{
				{Name: "scratch", Ephemeral: true, Filesystem: fixedFS(4000, space)},
				{Name: "data", Claim: "db", Filesystem: fixedFS(90000, space)},
			},
			ManagedFiles: &files,
		}},
	}
}

// TestSummarize checks the summary of a pod with cgroups, a container that has disappeared,
// and a container without a cgroup whose usage the runtime reports.
func TestSummarize(t *testing.T) {
	node := NodeInfo{Name: "n1", PoddStarted: noon.Add(-24 * time.Hour)}
	for name, disk := range map[string]*Disk{"whole": fixedDisk(), "basic": nil} {
		got, err := json.MarshalIndent(Summarize(node, fixedSample(), disk), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata", name+".json"), string(got)+"\n")
	}
}

// TestSummarize_HugePages checks that huge pages are not available memory, in the whole summary and in the
// summary of CPU and memory.
func TestSummarize_HugePages(t *testing.T) {
	for name, test := range map[string]struct{ hugePages, want uint64 }{
		"none":               {0, 60000},
		"less than the rest": {50000, 10000},
		"all of the rest":    {60000, 0},
		"more than the rest": {70000, 0},
	} {
		for _, d := range []*Disk{fixedDisk(), nil} {
			memory := Summarize(NodeInfo{HugePageBytes: test.hugePages}, fixedSample(), d).Node.Memory
			if got := *memory.AvailableBytes; got != test.want || *memory.WorkingSetBytes != 40000 {
				t.Errorf("%s, with disks %t: got %d available bytes and a working set of %d, want %d and 40000", name, d != nil, got, *memory.WorkingSetBytes, test.want)
			}
		}
	}
}

// TestContainers checks that the result of Containers has cAdvisor's labels, and that Containers does not
// modify the sample.
func TestContainers(t *testing.T) {
	s := fixedSample()
	s.Pods[0].Containers[0].Image = "web:\xff"
	all := s.Containers()
	type row struct{ id, pod, container, image string }
	got := map[string]row{}
	for name, c := range all {
		got[name] = row{c.Id, c.Spec.Labels[runtime.LabelPodName], c.Spec.Labels[runtime.LabelContainerName], c.Spec.Image}
	}
	want := map[string]row{
		"/": {}, "/kubepods": {}, "/system.slice/podd.service": {},
		"/kubepods/podu1":    {pod: "web-n1"},
		"/kubepods/podu1/s1": {id: "s1", pod: "web-n1"},
		"/kubepods/podu1/c1": {"c1", "web-n1", "app", `web:\xff`},
		"/c3":                {id: "c3", pod: "box-n1", container: "inside"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("IDs, labels and images by cgroup (-want +got):\n%s", diff)
	}
	for name, rate := range s.CPURates() {
		if all[name] == nil || rate == 0 {
			t.Errorf("CPU rate of %s: got %d, want only rates of cgroups that use the CPU", name, rate)
		}
	}
	if s.Pods[0].Cgroup.Info.Spec.Labels != nil {
		t.Errorf("labels in the sample after Containers: got %v, want none", s.Pods[0].Cgroup.Info.Spec.Labels)
	}
}
