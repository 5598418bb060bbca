package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"

	"podd/reconcile/render"
)

// reads is what a file of a cgroup says in the hierarchy that has it.
func reads(t *testing.T, points []string, at, file string) string {
	t.Helper()
	for _, p := range points {
		if text, err := os.ReadFile(filepath.Join(p, at, file)); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	t.Fatalf("no hierarchy has %s/%s", at, file)
	return ""
}

func TestMake(t *testing.T) {
	root, points := newRoot(t)
	at := root + "/kubepods/burstable/pod" + uid
	c := render.Cgroup{Parent: at, CPUShares: 512, CPUQuota: 150000, CPUPeriod: 100000, Memory: 64 << 20, Pids: 100}
	want := map[string]string{"cpu.shares": "512", "cpu.cfs_quota_us": "150000", "memory.limit_in_bytes": "67108864", "pids.max": "100"}
	if cgroups.IsCgroup2UnifiedMode() {
		want = map[string]string{"cpu.weight": "20", "cpu.max": "150000 100000", "memory.max": "67108864", "pids.max": "100"}
	}
	for range 2 { // again is the same
		if err := Make(c); err != nil {
			t.Fatal(err)
		}
		for file, text := range want {
			if got := reads(t, points, at, file); got != text {
				t.Errorf("%s: got %s, want %s", file, got, text)
			}
		}
	}
	c.Pids = 7
	if err := Make(c); err != nil {
		t.Fatal(err)
	}
	if got := reads(t, points, at, "pids.max"); got != "7" {
		t.Errorf("pids.max after a change: %s", got)
	}
	if err := RemovePod(t.Context(), root, uid, nil); err != nil {
		t.Fatal(err)
	}
	if dirs := left(points, at); len(dirs) > 0 {
		t.Errorf("left: %v", dirs)
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, parent := range []string{"", "relative", "/a/../b", "/a/"} {
		if err := Make(render.Cgroup{Parent: parent}); err == nil {
			t.Errorf("%q was made", parent)
		}
	}
}

func TestLibraryConfig(t *testing.T) {
	for parent, want := range map[string][2]string{
		"/kubepods.slice": {"-.slice", "kubepods.slice"},
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu.slice": {"kubepods-burstable.slice", "kubepods-burstable-podu.slice"},
	} {
		c, err := libraryConfig(render.Cgroup{Parent: parent, Systemd: true})
		if err != nil || c.Parent != want[0] || c.Name != want[1] || !c.Systemd {
			t.Errorf("%s: got %+v, %v", parent, c, err)
		}
	}
}

func TestWeight(t *testing.T) {
	for shares, want := range map[int64]uint64{2: 1, 102: 4, 1024: 39, 262144: 10000} {
		if got := weight(shares); got != want {
			t.Errorf("weight(%d): got %d, want %d", shares, got, want)
		}
	}
}
