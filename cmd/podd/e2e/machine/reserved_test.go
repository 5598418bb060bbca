//go:build e2e

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReserved checks that podd limits the slices of reserved resources, and that systemd keeps the
// limits when it reloads its units. kube.slice is limited with all resources, and system-daemons.slice
// with its CPU weight only.
func TestReserved(t *testing.T) {
	for _, name := range []string{"kube.slice", "system-daemons.slice"} {
		run(t, "systemctl start "+name)
		t.Cleanup(func() { run(t, "systemctl stop "+name) })
	}
	configure(t, `enforceNodeAllocatable: [pods, kube-reserved, system-reserved-compressible]
kubeReserved: {cpu: 250m, memory: 64Mi, pid: "100"}
kubeReservedCgroup: /kube.slice
systemReserved: {cpu: 100m, memory: 32Mi, pid: "100"}
systemReservedCgroup: /system.slice/system-daemons.slice`)
	check := func() error {
		for file, want := range map[string]string{
			"kube.slice/cpu.weight": "10", "kube.slice/memory.max": mebibytes(64), "kube.slice/pids.max": "100",
			"system.slice/system-daemons.slice/cpu.weight": "4", "system.slice/system-daemons.slice/memory.max": "max",
		} {
			text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", file))
			if got := strings.TrimSpace(string(text)); err != nil || got != want {
				return fmt.Errorf("%s: got %q (error %v), want %q", file, got, err, want)
			}
		}
		return nil
	}
	eventually(t, "the slices are limited", check)
	run(t, "systemctl daemon-reload")
	if err := check(); err != nil {
		t.Errorf("limits after systemctl daemon-reload: %v", err)
	}
	apply(t, map[string]string{"web": pod("web", "", container("web", forever, ""))})
	untilReady(t, "web")
	remove(t, "web")
	untilClean(t)
}
