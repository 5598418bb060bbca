package memorywatch

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
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
	for _, p := range []Paths{{}, {MemoryCgroup: t.TempDir(), Pressure: filepath.Join(t.TempDir(), "none")}} {
		w := Open(p, slog.New(slog.DiscardHandler))
		w.Arm(1)
		w.Close()
		select {
		case <-w.Events():
			t.Errorf("%+v: got an event", p)
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
			t.Error("a notification was registered without cgroup v1")
		}
		return
	}
	if w.usage == nil {
		t.Fatal("no notification was registered")
	}
	// tail keeps the bytes in memory.
	c := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1/cgroup.procs" && head -c 67108864 /dev/zero | tail -c 67108864 >/dev/null`, "sh", dir)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("using memory: %v: %s", err, text)
	}
	select {
	case <-w.Events():
	case <-time.After(10 * time.Second):
		t.Error("no event after 10s, although the memory usage had grown by 64 MiB")
	}
	w.Arm(0)
	if w.usage != nil {
		t.Error("the notification is still registered after Arm(0)")
	}
}

// TestWatcher_Trigger checks that a PSI trigger is registered on a host with PSI, and that Close ends
// the poll of the trigger.
func TestWatcher_Trigger(t *testing.T) {
	const path = "/proc/pressure/memory"
	w := Open(Paths{Pressure: path}, slog.New(slog.DiscardHandler))
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		if f.Close(); w.stop == nil {
			t.Error("no trigger was registered")
		}
	}
	closed := make(chan struct{})
	go func() { w.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close did not return within 10s")
	}
}
