//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"

	"podd/reconcile/cgroup"
	"podd/reconcile/render"
)

// makeCgroup creates a cgroup with this name in the parent cgroup of the shared stack, and returns its
// path. The stack removes it.
func makeCgroup(t testing.TB, name string) string {
	t.Helper()
	at := shared.CgroupParent() + "/" + name
	if err := cgroup.Create(render.Cgroup{Path: at}); err != nil {
		t.Fatal(err)
	}
	return at
}

// hostCgroupFile returns the content of a file in a cgroup of the host: v1File in the controller's
// hierarchy with cgroup v1, and v2File with cgroup v2.
func hostCgroupFile(t testing.TB, at, controller, v1File, v2File string) string {
	t.Helper()
	file := filepath.Join("/sys/fs/cgroup", controller, at, v1File)
	if cgroups.IsCgroup2UnifiedMode() {
		file = filepath.Join("/sys/fs/cgroup", at, v2File)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestReservedCgroups checks that podd sets the limits of the cgroups for reserved resources and records
// events. For kube-reserved it must set limits of all resources, and for system-reserved-compressible
// only the CPU weight.
func TestReservedCgroups(t *testing.T) {
	t.Parallel()
	kube, system := makeCgroup(t, "kube-reserved"), makeCgroup(t, "system-reserved")
	unlimitedMemory := hostCgroupFile(t, system, "memory", "memory.limit_in_bytes", "memory.max")
	unlimitedPids := hostCgroupFile(t, system, "pids", "pids.max", "pids.max")
	d := startDaemon(t, "--enforce-node-allocatable=pods,kube-reserved,system-reserved-compressible",
		"--kube-reserved=cpu=250m,memory=64Mi,pid=100", "--kube-reserved-cgroup="+kube,
		"--system-reserved=cpu=100m,memory=32Mi,pid=100", "--system-reserved-cgroup="+system)
	d.untilEvent("", 1, "NodeAllocatableEnforced", "Updated limits on system reserved cgroup "+system)
	d.untilEvent("", 1, "NodeAllocatableEnforced", "Updated limits on kube reserved cgroup "+kube)
	d.untilEvent("", 1, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
	for _, tt := range []struct{ at, controller, v1File, v2File, want1, want2 string }{
		{kube, "cpu", "cpu.shares", "cpu.weight", "256", "10"},
		{kube, "memory", "memory.limit_in_bytes", "memory.max", strconv.Itoa(64 << 20), strconv.Itoa(64 << 20)},
		{kube, "pids", "pids.max", "pids.max", "100", "100"},
		{system, "cpu", "cpu.shares", "cpu.weight", "102", "4"},
		{system, "memory", "memory.limit_in_bytes", "memory.max", unlimitedMemory, unlimitedMemory},
		{system, "pids", "pids.max", "pids.max", unlimitedPids, unlimitedPids},
	} {
		if err := checkCgroupValue(hostCgroupFile(t, tt.at, tt.controller, tt.v1File, tt.v2File), tt.want1, tt.want2); err != nil {
			t.Errorf("%s of %s: %v", tt.v1File, tt.at, err)
		}
	}
	d.apply(d.pod("web", shell("a", serve("web"))))
	d.untilApplied("web")
}

// TestReservedCgroups_Missing checks that podd exits with an error that names the missing cgroup, and
// starts when the cgroup exists.
func TestReservedCgroups_Missing(t *testing.T) {
	t.Parallel()
	at := shared.CgroupParent() + "/missing"
	d := newDaemon(t, shared, "--enforce-node-allocatable=kube-reserved", "--kube-reserved=memory=64Mi", "--kube-reserved-cgroup="+at)
	d.launch()
	d.eventually("podd exits", func() error {
		if d.proc.running() {
			return fmt.Errorf("podd is still running")
		}
		return nil
	})
	log, err := os.ReadFile(d.logFile())
	if want := "enforcing kube-reserved: cgroup " + at + " does not exist; create it before podd starts, for example with: mkdir -p "; err != nil || !strings.Contains(string(log), want) {
		t.Errorf("podd's log: got error %v and\n%s\nwant %q in it", err, log, want)
	}
	if code := d.proc.cmd.ProcessState.ExitCode(); code == 0 {
		t.Error("podd without the cgroup for kube-reserved: got exit code 0, want another one")
	}
	makeCgroup(t, "missing")
	d.start()
	d.untilEvent("", 1, "NodeAllocatableEnforced", "Updated limits on kube reserved cgroup "+at)
}
