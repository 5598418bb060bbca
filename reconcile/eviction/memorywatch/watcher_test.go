package memorywatch

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
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
	for _, p := range []Paths{{}, {MemoryCgroup: t.TempDir(), PodsMemoryCgroups: func() []string { return []string{none} }, Pressure: none, LimitEvents: []string{none}}} {
		w := Open(p, slog.New(slog.DiscardHandler))
		w.Arm(1, 1)
		w.Close()
		select {
		case <-w.Events():
			t.Errorf("paths %+v: got an event, want none", p)
		default:
		}
	}
}

// TestWatcher_Usage checks that growing memory usage of the node or of all pods causes an event. On a
// host with cgroup v1, the kernel sends the event; elsewhere the test checks only that Arm does nothing.
func TestWatcher_Usage(t *testing.T) {
	for _, tt := range []struct {
		name  string
		paths func(dir string) Paths
		arm   func(w *Watcher, distance int64) *usageWatch
	}{
		{
			"node", func(dir string) Paths { return Paths{MemoryCgroup: dir} },
			func(w *Watcher, distance int64) *usageWatch { w.Arm(distance, 1); return &w.node },
		},
		{
			"all pods", func(dir string) Paths {
				return Paths{PodsMemoryCgroups: func() []string { return []string{filepath.Join(dir, "none"), dir} }}
			},
			func(w *Watcher, distance int64) *usageWatch { w.Arm(1, distance); return &w.pods },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := newCgroup(t)
			w := Open(tt.paths(dir), slog.New(slog.DiscardHandler))
			defer w.Close()
			tt.arm(w, 1<<40)
			u := tt.arm(w, 8<<20)
			if dir == "" {
				if u.events != nil {
					t.Error("without cgroup v1: got a registered notification, want none")
				}
				return
			}
			if u.events == nil {
				t.Fatal("with cgroup v1: got no registered notification, want one")
			}
			useMemory(t, dir)
			waitForEvent(t, w, "after the memory usage had grown by 64 MiB")
			tt.arm(w, 0)
			if u.events != nil {
				t.Error("after Arm(0): got a registered notification, want none")
			}
		})
	}
}

// TestWatcher_RecreatedPods checks that the notification of the memory usage of all pods is registered
// again after the cgroup was removed and created again. The test needs cgroup v1 for memory.
func TestWatcher_RecreatedPods(t *testing.T) {
	parent := newCgroup(t)
	if parent == "" {
		return
	}
	dir := filepath.Join(parent, "kubepods")
	w := Open(Paths{PodsMemoryCgroups: func() []string { return []string{dir} }}, slog.New(slog.DiscardHandler))
	defer w.Close()
	w.Arm(0, 8<<20)
	if w.pods.events != nil {
		t.Error("cgroup does not exist: got a registered notification, want none")
	}
	for _, name := range []string{"created", "created again"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w.Arm(0, 8<<20)
		drain(w)
		useMemory(t, dir)
		waitForEvent(t, w, "cgroup "+name+": after the memory usage had grown by 64 MiB")
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		waitForEvent(t, w, "cgroup removed") // so that drain later finds no event of this cgroup
	}
}

// useMemory makes a process in a memory cgroup use 64 MiB, and waits until it has exited.
func useMemory(t *testing.T, dir string) {
	t.Helper()
	// tail keeps all bytes in memory until it has read a newline.
	c := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1/cgroup.procs" && head -c 67108864 /dev/zero | tail -c 67108864 >/dev/null`, "sh", dir)
	if text, err := child.CombinedOutput(c); err != nil {
		t.Fatalf("using memory: %v: %s", err, text)
	}
}

// waitForEvent waits for an event of w. when describes what must have caused the event.
func waitForEvent(t *testing.T, w *Watcher, when string) {
	t.Helper()
	select {
	case <-w.Events():
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s: got no event within 5m, want one", when)
	}
}

// TestForward checks that notifications are read at most once per second, except the first, and that the
// last one is not lost.
func TestForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pending, stop := make(chan struct{}, 1), make(chan struct{}) // like an eventfd, pending merges notifications
		start := time.Now()
		var notified []time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			forward(func() error {
				if _, ok := <-pending; !ok {
					return io.EOF
				}
				return nil
			}, func() { notified = append(notified, time.Since(start)) }, stop)
		}()
		for range 150 { // until 1.49 s
			select {
			case pending <- struct{}{}:
			default:
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		close(pending)
		<-done
		if want := []time.Duration{0, time.Second, 2 * time.Second}; !slices.Equal(notified, want) {
			t.Errorf("got notifications after %v, want %v", notified, want)
		}
	})
}

// TestForward_Stop checks that forward returns without waiting if stop is closed after a notification.
func TestForward_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, stop := time.Now(), make(chan struct{})
		forward(func() error { return nil }, func() { close(stop) }, stop)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("got a return after %v, want one at once", waited)
		}
	})
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
// cgroup is created or recreated after Open. The test uses cgroup.events instead of memory.events.local,
// because the v2 hierarchy of a hybrid host has no memory controller. The kernel sends the same
// notification for both files.
func TestWatcher_LimitEvents(t *testing.T) {
	hierarchy := unifiedHierarchy(t)
	dir := filepath.Join(hierarchy, "podd-memorywatch-"+strconv.Itoa(os.Getpid()))
	w := Open(Paths{LimitEvents: []string{filepath.Join(t.TempDir(), "none"), filepath.Join(dir, "cgroup.events")}}, slog.New(slog.DiscardHandler))
	defer w.Close()
	w.Arm(1, 1)
	for range 2 {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(dir)
		w.Arm(1, 1)
		w.Arm(1, 1)
		drain(w)
		c := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1/cgroup.procs"`, "sh", dir)
		if text, err := child.CombinedOutput(c); err != nil {
			t.Fatalf("moving a process into the cgroup: %v: %s", err, text)
		}
		waitForEvent(t, w, "after the file has changed")
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
