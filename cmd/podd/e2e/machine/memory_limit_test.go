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
// limit, but not when a cgroup in it reaches a limit of its own.
func TestMemoryLimit(t *testing.T) {
	const pods = "/sys/fs/cgroup/memory-limit"
	const container = pods + "/container"
	if err := os.MkdirAll(container, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(pods)
	defer os.Remove(container)
	if err := os.WriteFile(filepath.Join(pods, "cgroup.subtree_control"), []byte("+memory"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := memorywatch.Open(memorywatch.Paths{LimitEvents: []string{filepath.Join(pods, "memory.events.local")}}, slog.New(slog.DiscardHandler))
	defer w.Close()
	w.Arm(0, 0)
	setLimit(t, container, mebibytes(16))
	useTooMuchMemory(t, container)
	select {
	case <-w.Events():
		t.Error("got an event after a cgroup reached its own memory limit, want none")
	default:
	}
	setLimit(t, pods, mebibytes(16))
	setLimit(t, container, "max")
	useTooMuchMemory(t, container)
	select {
	case <-w.Events():
	case <-time.After(time.Minute):
		t.Error("got no event within a minute after the parent cgroup reached its memory limit, want one")
	}
}

// setLimit sets the memory limit of a cgroup.
func setLimit(t *testing.T, dir, limit string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "memory.max"), []byte(limit), 0o644); err != nil {
		t.Fatal(err)
	}
}

// useTooMuchMemory runs a process in a cgroup that uses 64 MiB, so the kernel must kill it.
func useTooMuchMemory(t *testing.T, dir string) {
	t.Helper()
	// tail must keep the last 64 MiB of its input in memory.
	hog := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1/cgroup.procs" && head -c 67108864 /dev/zero | tail -c 67108864 >/dev/null`, "sh", dir)
	if text, err := hog.CombinedOutput(); err == nil {
		t.Errorf("process that needs more memory than the limit of its cgroup: got no error and the output %q, want the process killed", text)
	}
}
