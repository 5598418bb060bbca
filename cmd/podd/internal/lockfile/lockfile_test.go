package lockfile

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// timeout limits the time for which a test waits. After this time the test fails.
const timeout = 5 * time.Minute

// errStopped is the error of run functions that were stopped by their context.
var errStopped = errors.New("stopped")

// A holder is a call of Hold in a goroutine.
type holder struct {
	hasLock chan struct{} // closed when run starts
	result  chan error    // receives the result of Hold
	stop    context.CancelFunc
}

// hold calls Hold in a goroutine, with a run function that waits until its context is done.
func hold(t *testing.T, path string, exitOnContention bool) *holder {
	ctx, stop := context.WithCancel(t.Context())
	h := &holder{make(chan struct{}), make(chan error, 1), stop}
	o := Options{Path: path, ExitOnContention: exitOnContention, Log: slog.New(slog.DiscardHandler)}
	go func() {
		h.result <- Hold(ctx, o, func(ctx context.Context) error {
			close(h.hasLock)
			<-ctx.Done()
			return errStopped
		})
	}()
	return h
}

// waitForLock waits until h holds the lock.
func (h *holder) waitForLock(t *testing.T) {
	t.Helper()
	select {
	case <-h.hasLock:
	case err := <-h.result:
		t.Fatalf("Hold returned before it had the lock: %v", err)
	case <-time.After(timeout):
		t.Fatalf("Hold did not obtain the lock within %v", timeout)
	}
}

// wait returns the result of Hold.
func (h *holder) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-h.result:
		return err
	case <-time.After(timeout):
		t.Fatalf("Hold did not return within %v", timeout)
		return nil
	}
}

// checkRunning checks that h keeps the lock. Hold must not return within three poll intervals.
func (h *holder) checkRunning(t *testing.T) {
	t.Helper()
	select {
	case err := <-h.result:
		t.Fatalf("Hold returned error %v, want it to keep the lock", err)
	case <-time.After(3 * pollInterval):
	}
}

// TestHold_NoFile checks that Hold calls run without a lock if no path is configured.
func TestHold_NoFile(t *testing.T) {
	want := errors.New("x")
	if err := Hold(t.Context(), Options{}, func(context.Context) error { return want }); err != want {
		t.Errorf("got error %v, want the error of run", err)
	}
}

// TestHold_Waits checks that only one process holds the lock, and that the next process obtains it when
// the first one stops.
func TestHold_Waits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first := hold(t, path, false)
	first.waitForLock(t)
	second := hold(t, path, false)
	first.checkRunning(t)
	select {
	case <-second.hasLock:
		t.Fatal("second call of Hold: got the lock, want it to wait for the first one")
	default:
	}
	first.stop()
	if err := first.wait(t); err != errStopped {
		t.Errorf("got error %v, want the error of run", err)
	}
	second.waitForLock(t)
	third := hold(t, path, false)
	third.stop()
	if err := third.wait(t); err != context.Canceled {
		t.Errorf("canceled while waiting for the lock: got error %v, want %v", err, context.Canceled)
	}
	second.stop()
	second.wait(t)
}

// TestHold_Contention checks that the process that holds the lock exits when another process waits for
// the lock, and that the other process then keeps the lock.
func TestHold_Contention(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first := hold(t, path, true)
	first.waitForLock(t)
	first.checkRunning(t)
	second := hold(t, path, true)
	if err := first.wait(t); err != errStopped {
		t.Errorf("got error %v, want the error of run", err)
	}
	second.waitForLock(t)
	second.checkRunning(t)
	second.stop()
	second.wait(t)
}

// TestHold_Removed checks that a process exits when the lock file is removed, but not when its
// attributes change.
func TestHold_Removed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	h := hold(t, path, true)
	h.waitForLock(t)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	h.checkRunning(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := h.wait(t); err != errStopped {
		t.Errorf("got error %v, want the error of run", err)
	}
}

// TestHold_Invalid checks the error for paths that podd does not use as a lock file.
func TestHold_Invalid(t *testing.T) {
	dir := t.TempDir()
	fifo, foreign := filepath.Join(dir, "fifo"), filepath.Join(dir, "foreign")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{dir: "is a directory", fifo: "not a regular file", filepath.Join(dir, "no", "lock"): "no such file"}
	if os.Geteuid() == 0 { // only root can give a file to another user
		if err := os.Chown(foreign, 1234, 0); err != nil {
			t.Fatal(err)
		}
		want[foreign] = "owned by the user with UID 1234"
	}
	for path, text := range want {
		err := Hold(t.Context(), Options{Path: path}, func(context.Context) error { return nil })
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got error %v, want one that contains %q", path, err, text)
		}
	}
}
