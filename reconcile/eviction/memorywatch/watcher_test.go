package memorywatch

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostCgroup is the root memory cgroup (v1) of the host; "" if the host has none.
func hostCgroup() string {
	const dir = "/sys/fs/cgroup/memory"
	if _, err := os.Stat(filepath.Join(dir, "cgroup.event_control")); err != nil {
		return ""
	}
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
	dir := hostCgroup()
	w := Open(Paths{MemoryCgroup: dir}, slog.New(slog.DiscardHandler))
	defer w.Close()
	w.Arm(1 << 40)
	w.Arm(8 << 20)
	if w.usage == nil {
		if dir != "" && w.cgroup != "" {
			t.Fatal("no notification was registered")
		}
		return
	}
	select {
	case <-w.Events():
		t.Log("the memory usage of the host has grown before the test used memory")
	default:
	}
	block, err := unix.Mmap(-1, 0, 256<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(block) }()
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	select {
	case <-w.Events():
	case <-time.After(10 * time.Second):
		t.Error("no event after 10s, although the memory usage has grown by 256 MiB")
	}
	runtime.KeepAlive(block)
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
