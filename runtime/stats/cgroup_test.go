package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cadvisor/lib/container/libcontainer"
	"github.com/google/cadvisor/lib/model"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
)

const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// writeFiles writes the files of a cgroup hierarchy. cAdvisor's library reads such files
// only in its test mode.
func writeFiles(t *testing.T, all map[string]string) string {
	t.Helper()
	cgroups.TestMode = true
	t.Cleanup(func() { cgroups.TestMode = false })
	root := t.TempDir()
	for name, text := range all {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRead_CgroupV1(t *testing.T) {
	if cgroups.IsCgroup2UnifiedMode() {
		return // skip the test, because cAdvisor's library determines the cgroup version from the host
	}
	root := writeFiles(t, map[string]string{
		"cpu/p/cpu.shares": "102\n", "cpu/p/cpu.cfs_quota_us": "20000\n", "cpu/p/cpu.cfs_period_us": "100000\n",
		"cpu/p/cpu.stat":                          "nr_periods 10\nnr_throttled 4\nthrottled_time 5000\n",
		"cpu/p/cgroup.procs":                      "",
		"cpuacct/p/cpuacct.usage":                 "3000000000\n",
		"cpuacct/p/cpuacct.usage_percpu":          "1000000000 2000000000\n",
		"cpuacct/p/cpuacct.stat":                  "user 200\nsystem 100\n",
		"memory/p/memory.stat":                    "cache 10\ntotal_cache 4096\ntotal_rss 8192\ntotal_inactive_file 1000\ntotal_swap 7\npgfault 3\npgmajfault 2\n",
		"memory/p/memory.usage_in_bytes":          "12288\n",
		"memory/p/memory.max_usage_in_bytes":      "20000\n",
		"memory/p/memory.failcnt":                 "1\n",
		"memory/p/memory.limit_in_bytes":          "1048576\n",
		"memory/p/memory.memsw.limit_in_bytes":    "9223372036854771712\n",
		"memory/p/memory.soft_limit_in_bytes":     "9223372036854771712\n",
		"memory/p/memory.use_hierarchy":           "1\n",
		"memory/p/memory.oom_control":             "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
		"pids/p/pids.current":                     "3\n",
		"pids/p/pids.max":                         "max\n",
		"blkio/p/blkio.throttle.io_service_bytes": "8:0 Read 512\n8:0 Write 1024\nTotal 1536\n",
		"blkio/p/blkio.throttle.io_serviced":      "8:0 Read 1\n8:0 Write 2\nTotal 3\n",
	})
	h := &hierarchy{mounts: map[string]string{}, machine: machineInfo{&model.MachineInfo{NumCores: 2}}, metrics: allMetrics}
	for _, c := range []string{"cpu", "cpuacct", "memory", "pids", "blkio"} {
		h.mounts[c] = filepath.Join(root, c)
	}
	info, err := h.read("p", 0)
	if err != nil {
		t.Fatal(err)
	}
	s := info.Stats[0]
	got := []uint64{
		s.Cpu.Usage.Total, s.Cpu.CFS.ThrottledPeriods, s.Memory.Usage, s.Memory.WorkingSet, s.Memory.RSS, s.Memory.Swap,
		s.Memory.ContainerData.Pgfault, info.Spec.Memory.Limit, info.Spec.Cpu.Limit, info.Spec.Cpu.Quota, s.OOMEvents,
		s.Processes.ThreadsCurrent, s.DiskIo.IoServiceBytes[0].Stats["Write"],
	}
	want := []uint64{3e9, 4, 12288, 11288, 8192, 7, 3, 1 << 20, 102, 20000, 5, 3, 1024}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statistics (-want +got):\n%s", diff)
	}
}

// TestOOMKills checks both cgroup versions, because their files differ.
func TestOOMKills(t *testing.T) {
	one := writeFiles(t, map[string]string{"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"})
	two := writeFiles(t, map[string]string{"memory.events": "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n"})
	for name, test := range map[string]struct {
		paths map[string]string
		want  uint64
	}{
		"version 1": {map[string]string{"memory": one}, 2},
		"version 2": {map[string]string{"": two}, 3},
		"missing":   {map[string]string{"": filepath.Join(two, "missing")}, 0},
	} {
		if got := oomKills(test.paths); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// TestChildren checks that children finds the cgroup of a container by each name that a runtime or cgroup
// driver uses, and that it does not return the cgroup of the container's monitor.
func TestChildren(t *testing.T) {
	other := "f" + id[1:]
	for _, name := range []string{id, "crio-" + id, "cri-containerd-" + id + ".scope", "crio-" + id + ".scope"} {
		for _, controller := range []string{"", "memory"} {
			root := writeFiles(t, map[string]string{
				"kubepods/podu/" + name + "/cgroup.procs": "41\n42\n", "kubepods/podu/nested/" + id + "/cgroup.procs": "",
				"kubepods/podu/" + other + ".mount/cgroup.procs": "", "kubepods/podu/" + id + "-file": "",
				"kubepods/podu/crio-conmon-" + id + "/cgroup.procs": "7\n", "kubepods/podu/crio-conmon-" + id + ".scope/cgroup.procs": "8\n",
			})
			h := &hierarchy{mounts: map[string]string{controller: root}}
			if got := h.firstExisting([]string{"/kubepods.slice/podu", "/kubepods/podu"}); got != "/kubepods/podu" {
				t.Errorf("got pod cgroup %q, want /kubepods/podu", got)
			}
			at := h.children("/kubepods/podu", []string{"", id, other})
			if diff := cmp.Diff(map[string]string{id: "/kubepods/podu/" + name}, at); diff != "" {
				t.Errorf("cgroups of containers with the name %s (-want +got):\n%s", name, diff)
			}
			if pid := h.networkPID(Pod{SandboxID: other, Containers: []Container{{ID: id}}}, at); pid != 41 {
				t.Errorf("%s: got the network of process %d, want 41", name, pid)
			}
		}
	}
}

func TestOwnCgroup(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/podd.service\n":          "/system.slice/podd.service",
		"4:memory:/a/b\n3:cpu,cpuacct:/c\n0::/d\n": "/a/b",
		"1:name=systemd:/x\n0::/user.slice/a:b\n":  "/user.slice/a:b",
		"12:pids:/only\n":                          "",
		"":                                         "",
		"nonsense\n4:memory:/with:colon\n":         "/with:colon",
	} {
		if got := parseCgroupPath(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestReadable(t *testing.T) {
	for name, want := range map[string]string{"eth0": "eth0", "Ünder": "Ünder", "a\"b": "a\"b", "e\xff0": `e\xff0`} {
		if got := toValidUTF8(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// TestReadMemory_SearchContainers creates the cgroups of two containers of a pod without a cgroup: one
// in a child of the root cgroup, and one in the root cgroup itself. ReadMemory must find both.
func TestReadMemory_SearchContainers(t *testing.T) {
	mounts, err := libcontainer.GetCgroupSubsystems(basicMetrics)
	if err != nil {
		t.Fatal(err)
	}
	parent := fmt.Sprintf("/podd-test-%d", os.Getpid())
	inParent, inRoot := strings.Repeat("a", 32)+id[:32], strings.Repeat("b", 32)+id[:32]
	for _, at := range []string{parent, parent + "/crio-" + inParent, "/cri-containerd-" + inRoot + ".scope"} {
		for _, mount := range mounts {
			dir := filepath.Join(mount, at)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.Remove(dir); err != nil {
					t.Error(err)
				}
			})
		}
	}
	pods := []Pod{{UID: "u1", Cgroups: []string{"/podd-no-such-cgroup"}, Containers: []Container{{ID: inParent, Name: "a"}, {ID: inRoot, Name: "b"}, {ID: id, Name: "c"}}}}
	for _, search := range []bool{true, false} {
		s, err := New(Options{Pods: func() []Pod { return pods }, SearchContainers: search}).ReadMemory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range s.Pods[0].Containers {
			if c.Cgroup != nil {
				got = append(got, c.Cgroup.Info.Name)
			}
		}
		var want []string
		if search {
			want = []string{parent + "/crio-" + inParent, "/cri-containerd-" + inRoot + ".scope"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("search %t: -want +got:\n%s", search, diff)
		}
	}
}
