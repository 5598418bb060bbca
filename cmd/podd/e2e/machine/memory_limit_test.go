//go:build e2e

package machine

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"podd/reconcile/eviction/memorywatch"
)

// TestMemoryLimit checks that, with cgroup v2, the kernel notifies podd when a cgroup reaches its memory
// limit.
func TestMemoryLimit(t *testing.T) {
	const dir = "/sys/fs/cgroup/memory-limit"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	if err := os.WriteFile(filepath.Join(dir, "memory.max"), []byte(mebibytes(16)), 0o644); err != nil {
		t.Fatal(err)
	}
	w := memorywatch.Open(memorywatch.Paths{LimitEvents: []string{filepath.Join(dir, "memory.events")}}, slog.New(slog.DiscardHandler))
	defer w.Close()
	w.Arm(0)
	// tail must keep the last 64 MiB of its input in memory, so the kernel kills it.
	hog := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1/cgroup.procs" && head -c 67108864 /dev/zero | tail -c 67108864 >/dev/null`, "sh", dir)
	if text, err := hog.CombinedOutput(); err == nil {
		t.Errorf("process that needs more memory than the limit of its cgroup: got no error and the output %q, want the process killed", text)
	}
	select {
	case <-w.Events():
	case <-time.After(time.Minute):
		t.Error("got no event within a minute after the cgroup reached its memory limit, want one")
	}
}
