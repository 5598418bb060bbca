package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/render"
)

func TestSetLimits(t *testing.T) {
	root, points := newTestRoot(t)
	mkdir(t, points, root+"/kube")
	c := render.Cgroup{Path: root + "/kube", CPUShares: 256, Memory: 64 << 20, Pids: 50}
	want := map[string]string{"cpu.shares": "256", "memory.limit_in_bytes": "67108864", "pids.max": "50"}
	if cgroups.IsCgroup2UnifiedMode() {
		want = map[string]string{"cpu.weight": "10", "memory.max": "67108864", "pids.max": "50"}
	}
	if err := SetLimits(c); err != nil {
		t.Fatal(err)
	}
	for file, text := range want {
		if got := readCgroupFile(t, points, c.Path, file); got != text {
			t.Errorf("%s: got %s, want %s", file, got, text)
		}
	}
	if err := SetLimits(render.Cgroup{Path: c.Path, CPUShares: 512}); err != nil {
		t.Fatal(err)
	}
	if got := readCgroupFile(t, points, c.Path, "pids.max"); got != "50" {
		t.Errorf("pids.max after SetLimits without a limit of processes: got %s, want 50", got)
	}
}

// TestSetLimits_Missing checks that SetLimits creates no cgroup, and that its error names a remedy.
func TestSetLimits_Missing(t *testing.T) {
	root, points := newTestRoot(t)
	c := render.Cgroup{Path: root + "/missing", CPUShares: 256, Memory: 64 << 20}
	err := SetLimits(c)
	if err == nil || !strings.Contains(err.Error(), "cgroup "+c.Path+" does not exist; create it before podd starts, for example with: mkdir -p ") {
		t.Errorf("got error %v, want one with a remedy", err)
	}
	if dirs := remaining(points, c.Path); len(dirs) > 0 {
		t.Errorf("got cgroups %v, want none", dirs)
	}
}

func TestMissingError(t *testing.T) {
	for _, tt := range []struct {
		err  missingError
		want string
	}{
		{
			missingError{Path: "/kube", Dirs: []string{"/sys/fs/cgroup/cpu/kube", "/sys/fs/cgroup/pids/kube"}},
			"cgroup /kube does not exist; create it before podd starts, for example with: mkdir -p /sys/fs/cgroup/cpu/kube /sys/fs/cgroup/pids/kube",
		},
		{
			missingError{Path: "/a.slice/a-kube.slice", Slice: "a-kube.slice", Dirs: []string{"/sys/fs/cgroup/a.slice/a-kube.slice"}},
			"cgroup /a.slice/a-kube.slice does not exist: /sys/fs/cgroup/a.slice/a-kube.slice is missing; start it before podd starts, for example with: systemctl start a-kube.slice",
		},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestCheckV1V2 checks both versions of cgroups with plain directories.
func TestCheckV1V2(t *testing.T) {
	dir := t.TempDir()
	exists, absent := filepath.Join(dir, "kube"), filepath.Join(dir, "absent")
	if err := os.Mkdir(exists, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(exists, "cgroup.controllers"), []byte("cpu memory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	limited, unlimited := render.Cgroup{Path: "/kube", CPUShares: 2, Memory: 1}, render.Cgroup{Path: "/kube"}
	hugePages := render.Cgroup{Path: "/kube", CPUShares: 2, HugePages: []*cri.HugepageLimit{{PageSize: "2MB"}}}
	v2 := func(c render.Cgroup, dir string) error {
		_, err := checkV2(c, dir)
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"v2, exists":             {v2(limited, exists), ""},
		"v2, absent":             {v2(limited, absent), "mkdir -p " + absent},
		"v2, missing controller": {v2(render.Cgroup{Path: "/kube", Pids: 1}, exists), "the controller pids of cgroup /kube is not enabled; enable it in " + dir + "/cgroup.subtree_control"},
		"v2, no huge pages":      {v2(hugePages, exists), ""},
		"v1, exists":             {checkV1(limited, map[string]string{"cpu": exists, "memory": exists, "pids": absent}), ""},
		"v1, absent for memory":  {checkV1(limited, map[string]string{"cpu": exists, "memory": absent, "pids": absent}), "mkdir -p " + absent},
		"v1, no limits":          {checkV1(unlimited, map[string]string{"cpu": exists, "memory": absent}), ""},
		"v1, absent, no limits":  {checkV1(unlimited, map[string]string{"": exists, "cpu": absent, "cpuacct": absent}), "mkdir -p " + absent},
		"v1, not mounted":        {checkV1(limited, map[string]string{"": exists, "cpu": exists}), "the controller memory is not mounted"},
	} {
		if tt.want == "" && tt.err != nil || tt.want != "" && (tt.err == nil || !strings.Contains(tt.err.Error(), tt.want)) {
			t.Errorf("%s: got error %v, want %q", name, tt.err, tt.want)
		}
	}
}
