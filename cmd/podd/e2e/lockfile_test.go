//go:build e2e

package e2e

import (
	"errors"
	"maps"
	"path/filepath"
	"testing"
)

// TestLockFile starts a second podd with the lock file and the root directory of the first one. The first
// podd must exit, and the second one must take over the running pod.
func TestLockFile(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.args = []string{"--lock-file", filepath.Join(d.dir, "kubelet.lock"), "--exit-on-lock-contention"}
	d.start()
	d.apply(d.pod("web", shell("main", singletonScript("web"))))
	d.untilApplied("web")
	first, was := d.proc, d.containersOfInstance(d.instanceLabel())
	d.proc = nil
	d.start()
	d.eventually("the first podd exits", func() error {
		if first.running() {
			return errors.New("the first podd is still running")
		}
		return nil
	})
	if code := first.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("first podd: got exit code %d, want 0", code)
	}
	d.untilApplied("web")
	if !d.proc.running() {
		t.Fatalf("second podd: got process state \"%s\", want a running process", d.proc.cmd.ProcessState)
	}
	if now := d.containersOfInstance(d.instanceLabel()); !maps.Equal(now, was) {
		t.Errorf("after the second podd has started: got running containers %v, want %v", now, was)
	}
	d.untilNoted("web runs")
}
