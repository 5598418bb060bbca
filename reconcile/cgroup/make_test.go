package cgroup

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs2"

	"podd/reconcile/node"
	"podd/reconcile/render"
)

// readCgroupFile returns the content of a cgroup's file in the first hierarchy that has it.
func readCgroupFile(t *testing.T, points []string, at, file string) string {
	t.Helper()
	for _, p := range points {
		if text, err := os.ReadFile(filepath.Join(p, at, file)); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	t.Fatalf("no hierarchy has %s/%s", at, file)
	return ""
}

func TestCreate(t *testing.T) {
	root, points := newTestRoot(t)
	at := root + "/kubepods/burstable/pod" + uid
	c := render.Cgroup{Path: at, CPUShares: 512, CPUQuota: 150000, CPUPeriod: 100000, Memory: 64 << 20, Pids: 100}
	want := map[string]string{"cpu.shares": "512", "cpu.cfs_quota_us": "150000", "memory.limit_in_bytes": "67108864", "pids.max": "100"}
	if cgroups.IsCgroup2UnifiedMode() {
		want = map[string]string{"cpu.weight": "20", "cpu.max": "150000 100000", "memory.max": "67108864", "pids.max": "100"}
	}
	for range 2 { // the second call changes nothing
		if err := Create(c); err != nil {
			t.Fatal(err)
		}
		for file, text := range want {
			if got := readCgroupFile(t, points, at, file); got != text {
				t.Errorf("%s: got %s, want %s", file, got, text)
			}
		}
	}
	c.Pids, c.CPUQuota = 7, -1
	if err := Create(c); err != nil {
		t.Fatal(err)
	}
	quotaFile, unlimited := "cpu.cfs_quota_us", "-1"
	if cgroups.IsCgroup2UnifiedMode() {
		quotaFile, unlimited = "cpu.max", "max 100000"
	}
	if got := readCgroupFile(t, points, at, quotaFile); got != unlimited {
		t.Errorf("%s after a change: got %s, want %s", quotaFile, got, unlimited)
	}
	if got := readCgroupFile(t, points, at, "pids.max"); got != "7" {
		t.Errorf("pids.max after a change: got %s, want 7", got)
	}
	if _, err := RemovePod(t.Context(), root, uid, nil); err != nil {
		t.Fatal(err)
	}
	if dirs := remaining(points, at); len(dirs) > 0 {
		t.Errorf("remaining cgroups: got %v, want none", dirs)
	}
}

// TestCreate_CPUSet checks that a new cgroup below a cgroup that Create created has the CPUs of its
// parent from the beginning. With cgroup v2 the kernel always does this.
func TestCreate_CPUSet(t *testing.T) {
	root, points := newTestRoot(t)
	if err := Create(render.Cgroup{Path: root + "/kubepods"}); err != nil {
		t.Fatal(err)
	}
	mkdir(t, points, root+"/kubepods/burstable/pod"+uid)
	for _, p := range points {
		text, err := os.ReadFile(filepath.Join(p, root, "kubepods/cpuset.cpus"))
		if err != nil || cgroups.IsCgroup2UnifiedMode() {
			continue
		}
		if got := readCgroupFile(t, []string{p}, root+"/kubepods/burstable/pod"+uid, "cpuset.cpus"); got != strings.TrimSpace(string(text)) {
			t.Errorf("CPUs of the new cgroup: got %q, want %q as in the parent", got, text)
		}
	}
}

// TestCreate_CPUs checks that Create gives a cgroup all CPUs of its parent again after they were
// changed. A parent with fewer CPUs must not be an error. With cgroup v2, a cgroup may have CPUs that its
// parent lacks.
func TestCreate_CPUs(t *testing.T) {
	root, points := newTestRoot(t)
	online, err := node.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	c := render.Cgroup{Path: root + "/kubepods", CPUs: online}
	write := func(at, cpus string) {
		t.Helper()
		for _, p := range points {
			file := filepath.Join(p, at, "cpuset.cpus")
			if _, err := os.Stat(file); err != nil {
				continue
			}
			if err := os.WriteFile(file, []byte(cpus), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(name, want string) {
		t.Helper()
		for range 2 { // the second call changes nothing
			if err := Create(c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := readCgroupFile(t, points, c.Path, "cpuset.cpus"); got != want {
				t.Errorf("%s: got CPUs %q, want %q", name, got, want)
			}
		}
	}
	want := online
	if err := Create(c); err != nil {
		t.Fatal(err)
	}
	if !cgroups.IsCgroup2UnifiedMode() { // the tests may run in a cgroup that lacks some of the CPUs
		want = readCgroupFile(t, points, root, "cpuset.cpus")
	}
	check("new cgroup", want)
	first, _, _ := strings.Cut(strings.ReplaceAll(want, "-", ","), ",")
	write(c.Path, first)
	check("after a change", want)
	if !cgroups.IsCgroup2UnifiedMode() {
		write(c.Path, first)
		want = first
	}
	write(root, first)
	check("parent with one CPU", want)
}

// TestWithCPUs checks that the CPUs of a cgroup (v2) are set only if the controller cpuset is enabled.
func TestWithCPUs(t *testing.T) {
	enabled := t.TempDir()
	if err := os.WriteFile(filepath.Join(enabled, "cpuset.cpus"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, cpus, want string }{{enabled, "0-3", "0-3"}, {enabled, "", ""}, {t.TempDir(), "0-3", ""}} {
		r := &cgroups.Resources{CpuWeight: 7}
		if got := withCPUs(r, tt.dir, tt.cpus); got.CpusetCpus != tt.want || got.CpuWeight != 7 || r.CpusetCpus != "" {
			t.Errorf("CPUs %q, controller enabled %t: got CPUs %q, want %q", tt.cpus, tt.dir == enabled, got.CpusetCpus, tt.want)
		}
	}
}

// TestID checks that the ID of a cgroup changes when the cgroup is created again.
func TestID(t *testing.T) {
	root, points := newTestRoot(t)
	c := render.Cgroup{Path: root + "/kubepods"}
	ids := map[string]bool{}
	check := func(when string, isNew bool) {
		t.Helper()
		id, err := ID(c)
		if err != nil || ids[id] == isNew {
			t.Errorf("%s: got ID %q, error %v; want an ID that was not in use before: %t", when, id, err, isNew)
		}
		ids[id] = true
	}
	check("cgroup does not exist", true)
	for _, when := range []string{"created", "created again"} {
		if err := Create(c); err != nil {
			t.Fatal(err)
		}
		check(when, true)
		c.CPUShares += 100
		if err := Create(c); err != nil {
			t.Fatal(err)
		}
		check(when+", changed", false)
		for _, p := range points {
			if err := rmdir(filepath.Join(p, c.Path)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMemory checks that a pod's cgroup is charged with the memory of a process below it.
func TestMemory(t *testing.T) {
	root, points := newTestRoot(t)
	at := root + "/kubepods/burstable/pod" + uid
	c := render.Cgroup{Path: at, Memory: 64 << 20}
	if got, limit, err := MeasureMemory(c); err != nil || got != 0 || limit != 0 {
		t.Errorf("cgroup does not exist: got %d bytes, limit %d, error %v; want 0, 0 and no error", got, limit, err)
	}
	if err := Create(c); err != nil {
		t.Fatal(err)
	}
	before, _, err := MeasureMemory(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, limit, err := MeasureMemory(render.Cgroup{Path: root}); err != nil || limit != 0 {
		t.Errorf("cgroup without a limit: got limit %d, error %v; want 0 and no error", limit, err)
	}
	hoard := exec.Command("sh", "-c", "read go; x=$(head -c 8388608 /dev/zero | tr '\\0' x); echo ready; read end")
	in, err := hoard.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := hoard.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hoard.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		hoard.Wait()
		if _, err := RemovePod(context.WithoutCancel(t.Context()), root, uid, nil); err != nil {
			t.Error(err)
		}
	})
	for _, p := range points {
		if _, err := os.Stat(filepath.Join(p, at)); err == nil {
			if err := os.WriteFile(filepath.Join(p, at, "cgroup.procs"), []byte(strconv.Itoa(hoard.Process.Pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if got, limit, err := MeasureMemory(c); err != nil || got < before+8<<20 || limit != c.Memory {
		t.Errorf("got %d bytes, limit %d, error %v; want at least %d bytes, limit %d", got, limit, err, before+8<<20, c.Memory)
	}
}

// TestReadLimits checks that ReadLimits returns the limits that Create has set, and that unlimited
// resources are recognized.
func TestReadLimits(t *testing.T) {
	root, _ := newTestRoot(t)
	at := root + "/kubepods/burstable/pod" + uid
	if got, err := ReadLimits(render.Cgroup{Path: at, CPUShares: 2}); err != nil || got.Changes(render.Cgroup{}) {
		t.Errorf("limits of a cgroup that does not exist: got %+v and error %v, want none", got, err)
	}
	for _, c := range []render.Cgroup{
		{Path: at, CPUShares: 2, CPUQuota: -1, CPUPeriod: 100_000},
		{Path: at, CPUShares: 102, CPUQuota: 20_000, CPUPeriod: 100_000, Memory: 64 << 20},
		{Path: at, CPUShares: 262144, CPUQuota: 200_000, CPUPeriod: 50_000, Memory: 100e6},
	} {
		if err := Create(c); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadLimits(c); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("limits: got %+v and error %v, want %+v", got, err, c)
		}
		if got, err := ReadLimits(render.Cgroup{Path: at}); err != nil || got.CPUShares == 0 {
			t.Errorf("shares of a cgroup with %d shares: got %d and error %v, want more than 0", c.CPUShares, got.CPUShares, err)
		}
	}
	got, err := ReadLimits(render.Cgroup{Path: at, CPUShares: 2})
	if err != nil || got.CPUShares < 262000 {
		t.Errorf("shares of a cgroup with 262144 shares: got %d and error %v, want at least 262000", got.CPUShares, err)
	}
	if pageSize := int64(os.Getpagesize()); got.Memory != 100e6/pageSize*pageSize {
		t.Errorf("memory limit of a cgroup with a limit of 100M: got %d, want 100M rounded down to a page", got.Memory)
	}
}

func TestCreate_InvalidParent(t *testing.T) {
	for _, parent := range []string{"", "relative", "/a/../b", "/a/"} {
		if err := Create(render.Cgroup{Path: parent}); err == nil {
			t.Errorf("Create with parent %q: got no error, want one", parent)
		}
	}
}

func TestLibraryConfig(t *testing.T) {
	for parent, want := range map[string][2]string{
		"/kubepods.slice": {"-.slice", "kubepods.slice"},
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu.slice": {"kubepods-burstable.slice", "kubepods-burstable-podu.slice"},
	} {
		c, err := libraryConfig(render.Cgroup{Path: parent, UsesSystemd: true})
		if err != nil || c.Parent != want[0] || c.Name != want[1] || !c.Systemd {
			t.Errorf("%s: got %+v, error %v; want parent and name %q", parent, c, err, want)
		}
	}
}

// TestLibraryResources_Protection checks that the cgroups library writes the protection of memory to
// the files of cgroup v2, here in a directory with such files.
func TestLibraryResources_Protection(t *testing.T) {
	cgroups.TestMode = true
	defer func() { cgroups.TestMode = false }()
	dir := t.TempDir()
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cgroup.controllers", "memory")
	for _, file := range []string{"memory.min", "memory.low", "memory.high"} {
		write(file, "old")
	}
	m, err := fs2.NewManager(&cgroups.Cgroup{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		protection     *render.MemoryProtection
		min, low, high string
	}{
		{nil, "old", "old", "old"},
		{&render.MemoryProtection{Low: 4096}, "0", "4096", "old"},
		{&render.MemoryProtection{Min: 8192, High: 16384}, "8192", "0", "16384"},
	} {
		if err := m.Set(libraryResources(render.Cgroup{Protection: step.protection})); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{"memory.min": step.min, "memory.low": step.low, "memory.high": step.high} {
			if got := readCgroupFile(t, []string{dir}, "", file); got != want {
				t.Errorf("protection %+v, %s: got %q, want %q", step.protection, file, got, want)
			}
		}
	}
}

func TestCPUWeight(t *testing.T) {
	for shares, want := range map[int64]uint64{2: 1, 102: 4, 1024: 39, 262144: 10000} {
		if got := cpuWeight(shares); got != want {
			t.Errorf("cpuWeight(%d): got %d, want %d", shares, got, want)
		}
	}
}

// TestAllPods checks the working set and the limit of the cgroup of all pods.
func TestAllPods(t *testing.T) {
	root, _ := newTestRoot(t)
	all := AllPods{Root: root}
	if used, limit, err := all.Measure(); err != nil || used != 0 || limit != 0 {
		t.Errorf("cgroup does not exist: got %d bytes, limit %d, error %v; want 0, 0 and no error", used, limit, err)
	}
	for _, mebibytes := range []int64{64, 128} {
		if err := Create(render.Cgroup{Path: root + "/kubepods", Memory: mebibytes << 20}); err != nil {
			t.Fatal(err)
		}
		if used, limit, err := all.Measure(); err != nil || used < 0 || used > 1<<20 || limit != mebibytes<<20 {
			t.Errorf("empty cgroup: got %d bytes, limit %d, error %v; want about 0, %d and no error", used, limit, err, mebibytes<<20)
		}
	}
}
