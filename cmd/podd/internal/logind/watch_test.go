package logind

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakePods records the calls of Begin and Cancel in Options.
type fakePods struct {
	mu           sync.Mutex    // guards all following fields
	calls        []string      // "begin DURATION" and "cancel"
	isInProgress bool          // a shutdown is in progress
	stopped      chan struct{} // closed by the test when the pods have stopped
}

func newFakePods() *fakePods { return &fakePods{stopped: make(chan struct{})} }

// record adds a call. isInProgress reports whether a shutdown is in progress after the call.
func (p *fakePods) record(call string, isInProgress bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.isInProgress = append(p.calls, call), isInProgress
}

// count returns the number of times that a call was made.
func (p *fakePods) count(call string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c == call {
			n++
		}
	}
	return n
}

func (p *fakePods) has(call string) bool { return p.count(call) > 0 }

func (p *fakePods) hasShutdown() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.isInProgress }

// eventually waits until a condition holds. It fails the test after 5 minutes. The parameter want
// describes the condition.
func eventually(t *testing.T, want string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("condition not met within 5m: %s", want)
		}
	}
}

// watchFake calls Run with the fake logind l and the fake pods p. Run returns when the test ends.
// watchFake returns the path of the drop-in file.
func watchFake(t *testing.T, l *fakeLogind, p *fakePods, period time.Duration) (dropIn string) {
	dropIn = filepath.Join(t.TempDir(), "conf.d", "99-kubelet.conf")
	l.dropIn = dropIn
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{
			Address: l.serve(t), DropInPath: dropIn, StopTimeout: period, Log: slog.New(slog.DiscardHandler),
			Begin: func(ctx context.Context, within time.Duration) error {
				p.record("begin "+within.String(), true)
				select {
				case <-ctx.Done():
				case <-p.stopped:
				}
				return ctx.Err()
			},
			Cancel:       func(context.Context) error { p.record("cancel", false); return nil },
			IsInProgress: p.hasShutdown,
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.stop()
	})
	return dropIn
}

// TestRun_Shutdown checks that logind waits until the pods have stopped, even if this takes longer
// than logind's default delay. It also checks that logind waits again in a shutdown that follows a
// cancelled shutdown.
func TestRun_Shutdown(t *testing.T) {
	l, p := newFake(5*time.Second), newFakePods()
	dropIn := watchFake(t, l, p, 30*time.Second)
	eventually(t, "logind waits", l.isInhibited)
	text, err := os.ReadFile(dropIn)
	if err != nil || !strings.Contains(string(text), "[Login]\nInhibitDelayMaxSec=30\n") {
		t.Errorf("drop-in file: got %q, error %v; want one with InhibitDelayMaxSec=30", text, err)
	}
	l.setPreparing(t, true)
	eventually(t, "pods are stopped", func() bool { return p.has("begin 30s") })
	if !l.isInhibited() {
		t.Error("while pods are stopping: got no inhibitor lock, want one")
	}
	l.setPreparing(t, false)
	eventually(t, "pods are started again", func() bool { return p.has("cancel") })
	l.setPreparing(t, true)
	close(p.stopped)
	eventually(t, "logind continues the shutdown", func() bool { return !l.isInhibited() })
	l.setPreparing(t, false)
	eventually(t, "logind waits again", l.isInhibited)
}

// TestRun_LongDelay checks that Run does not change a delay of logind that is long enough, and that
// the pods get only the configured period.
func TestRun_LongDelay(t *testing.T) {
	l, p := newFake(time.Minute), newFakePods()
	watchFake(t, l, p, 30*time.Second)
	eventually(t, "logind waits", l.isInhibited)
	if l.count("KillUnit") > 0 {
		t.Error("got a reload of logind, want none, because its delay is sufficient")
	}
	l.setPreparing(t, true)
	eventually(t, "pods are stopped", func() bool { return p.has("begin 30s") })
}

// TestRun_Connect checks that a watcher handles a shutdown that was started or cancelled before the
// watcher connected to logind. It must handle the shutdown also when it connects again after a lost
// connection.
func TestRun_Connect(t *testing.T) {
	for _, tt := range []struct {
		name                    string
		preparing, isInProgress bool   // whether logind and podd have a shutdown in progress
		state                   string // of systemd
		want, unwanted          string // calls; "" if no call is expected
	}{
		{"shutdown was started", true, false, "running", "begin 1s", "cancel"},
		{"shutdown was cancelled", false, true, "running", "cancel", "begin 1s"},
		{"systemd is stopping the host", false, true, "stopping", "", "cancel"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, p := newFake(time.Minute), newFakePods()
			p.isInProgress = tt.isInProgress
			l.state, l.preparing = tt.state, tt.preparing
			watchFake(t, l, p, time.Second)
			eventually(t, "the watcher calls "+cmp.Or(tt.want, "neither function, but reads SystemState"), func() bool { return tt.want == "" && l.count("SystemState") > 0 || p.has(tt.want) })
			l.disconnect()
			eventually(t, "the watcher connects again", func() bool { return l.connections() > 1 && l.isInhibited() == !tt.preparing })
			if p.has(tt.unwanted) {
				t.Errorf("got call %q, want none", tt.unwanted)
			}
		})
	}
}

// TestRun_SpoofedSignals checks that signals from other clients of the bus have no effect except that
// the watcher reads the state from logind. They must neither stop nor start pods, nor close the
// connection.
func TestRun_SpoofedSignals(t *testing.T) {
	l, p := newFake(time.Minute), newFakePods()
	watchFake(t, l, p, 30*time.Second)
	eventually(t, "logind waits", l.isInhibited)
	l.spoof(t, "org.freedesktop.DBus", "NameAcquired", ":1.1")
	reads := func() int { return l.count("PreparingForShutdown") }
	for _, body := range [][]any{{true}, {false}, {"text"}, nil} {
		before := reads()
		l.spoof(t, logindManager, "PrepareForShutdown", body...)
		eventually(t, "the watcher reads the state from logind", func() bool { return reads() > before })
	}
	l.setPreparing(t, true)
	eventually(t, "pods are stopped", func() bool { return p.has("begin 30s") })
	before := reads()
	l.spoof(t, logindManager, "PrepareForShutdown", false)
	eventually(t, "the watcher reads the state from logind", func() bool { return reads() > before })
	if p.has("cancel") || p.count("begin 30s") != 1 || l.connections() != 1 || !l.isInhibited() {
		t.Errorf("got call of Cancel %t, %d calls of Begin, %d connections, inhibitor lock %t; want false, 1, 1, true", p.has("cancel"), p.count("begin 30s"), l.connections(), l.isInhibited())
	}
}

// TestRun_ConnectionLost checks a connection that is lost during a shutdown. logind must still wait, and
// the watcher must call Begin again, so that the pods continue to stop.
func TestRun_ConnectionLost(t *testing.T) {
	l, p := newFake(time.Minute), newFakePods()
	watchFake(t, l, p, 30*time.Second)
	eventually(t, "logind waits", l.isInhibited)
	l.setPreparing(t, true)
	eventually(t, "pods are stopped", func() bool { return p.has("begin 30s") })
	l.disconnect()
	eventually(t, "stopping continues", func() bool { return p.count("begin 30s") == 2 })
	if !l.isInhibited() {
		t.Error("after the connection was lost: got no inhibitor lock, want one")
	}
	close(p.stopped)
	eventually(t, "logind continues the shutdown", func() bool { return !l.isInhibited() })
}
