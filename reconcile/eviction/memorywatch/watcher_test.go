package memorywatch

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"

	"podd/runtime/runtimetest/child"
)

// newCgroup creates a memory cgroup (v1) and removes it at the end of the test. It returns "" if the
// host has no cgroup v1 for memory.
func newCgroup(t *testing.T) string {
	const hierarchy = "/sys/fs/cgroup/memory"
	if _, err := os.Stat(filepath.Join(hierarchy, "cgroup.event_control")); err != nil {
		return ""
	}
	dir, err := os.MkdirTemp(hierarchy, "podd-memorywatch-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestWatcher_Missing checks that a host without notifications sends no events.
func TestWatcher_Missing(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, p := range []Paths{{}, {MemoryCgroup: t.TempDir(), Pressure: none, LimitEvents: []string{none}}} {
		w := Open(p, slog.New(slog.DiscardHandler))
		w.Arm(1)
		w.Close()
		select {
		case <-w.Events():
			t.Errorf("paths %+v: got an event, want none", p)
		default:
		}
	}
}

// TestWatcher_Usage checks that growing memory usage causes an event. On a host with cgroup v1, the
// kernel sends the event; elsewhere the test checks only that Arm does nothing.
func TestWatcher_Usage(t *testing.T) {
	dir := newCgroup(t)
	w := Open(Paths{MemoryCgroup: dir}, slog.New(slog.DiscardHandler))
	defer w.Close()
	w.Arm(1 << 40)
	w.Arm(8 << 20)
	if dir == "" {
		if w.usage != nil {
			t.Error("without cgroup v1: got a registered notification, want none")
		}
		return
	}
	if w.usage == nil {
		t.Fatal("with cgroup v1: got no registered notification, want one")
	}
	// tail keeps all bytes in memory until it has read a newline.
	c := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1/cgroup.procs" && head -c 67108864 /dev/zero | tail -c 67108864 >/dev/null`, "sh", dir)
	if text, err := child.CombinedOutput(c); err != nil {
		t.Fatalf("using memory: %v: %s", err, text)
	}
	select {
	case <-w.Events():
	case <-time.After(5 * time.Minute):
		t.Error("after the memory usage had grown by 64 MiB: got no event within 5m, want one")
	}
	w.Arm(0)
	if w.usage != nil {
		t.Error("after Arm(0): got a registered notification, want none")
	}
}

// TestWatcher_Trigger checks that a PSI trigger is registered on a host with PSI, and that Close ends
// the poll of the trigger.
func TestWatcher_Trigger(t *testing.T) {
	const path = "/proc/pressure/memory"
	w := Open(Paths{Pressure: path}, slog.New(slog.DiscardHandler))
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		if f.Close(); w.stop == nil {
			t.Error("PSI: got no registered trigger, want one")
		}
	}
	closed := make(chan struct{})
	go func() { w.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(5 * time.Minute):
		t.Fatal("Close: got no return within 5m, want one")
	}
}

// TestWatcher_LimitEvents checks that a change of a file of a cgroup causes an event, even if the
// cgroup is created or recreated after Open. The test uses cgroup.events instead of memory.events,
// because the v2 hierarchy of a hybrid host has no memory controller. The kernel sends the same
// notification for both files.
func TestWatcher_LimitEvents(t *testing.T) {
	hierarchy := unifiedHierarchy(t)
	dir := filepath.Join(hierarchy, "podd-memorywatch-"+strconv.Itoa(os.Getpid()))
	w := Open(Paths{LimitEvents: []string{filepath.Join(t.TempDir(), "none"), filepath.Join(dir, "cgroup.events")}}, slog.New(slog.DiscardHandler))
	defer w.Close()
	w.Arm(1)
	for range 2 {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(dir)
		w.Arm(1)
		w.Arm(1)
		drain(w)
		c := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1/cgroup.procs"`, "sh", dir)
		if text, err := child.CombinedOutput(c); err != nil {
			t.Fatalf("moving a process into the cgroup: %v: %s", err, text)
		}
		select {
		case <-w.Events():
		case <-time.After(5 * time.Minute):
			t.Fatal("no event after 5m, although the file has changed")
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// drain receives the event that is pending, if there is one.
func drain(w *Watcher) {
	select {
	case <-w.Events():
	default:
	}
}

// unifiedHierarchy returns the mount point of the v2 hierarchy.
func unifiedHierarchy(t *testing.T) string {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup2"))
	if err != nil || len(mounts) == 0 {
		t.Fatalf("the host has no cgroup v2 hierarchy: %v", err)
	}
	return mounts[0].Mountpoint
}
