package logind

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A pods records the calls of the functions in Options.
type pods struct {
	mu       sync.Mutex // guards all following fields
	calls    []string   // "begin PERIOD" and "cancel"
	underWay bool
	stopped  chan struct{} // closed by the test when the pods have stopped
}

func newPods() *pods { return &pods{stopped: make(chan struct{})} }

// record adds a call. underWay reports whether a shutdown is in progress after the call.
func (p *pods) record(call string, underWay bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.underWay = append(p.calls, call), underWay
}

// count returns the number of times that a call was made.
func (p *pods) count(call string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c == call {
			n++
		}
	}
	return n
}

func (p *pods) has(call string) bool { return p.count(call) > 0 }

func (p *pods) isUnderWay() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.underWay }

// eventually waits until a condition holds. It fails the test after 30 s. The parameter want
// describes the condition.
func eventually(t *testing.T, want string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got nothing within 30s, want: %s", want)
		}
	}
}

// watchFake runs a watcher of l until the test ends. It returns the path of the drop-in
// file.
func watchFake(t *testing.T, l *fakeLogind, p *pods, period time.Duration) (dropIn string) {
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
			IsInProgress: p.isUnderWay,
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
	l, p := newFake(5*time.Second), newPods()
	dropIn := watchFake(t, l, p, 30*time.Second)
	eventually(t, "logind waits", l.isInhibited)
	text, err := os.ReadFile(dropIn)
	if err != nil || !strings.Contains(string(text), "[Login]\nInhibitDelayMaxSec=30\n") {
		t.Errorf("drop-in file: got %q, %v", text, err)
	}
	l.setPreparing(t, true)
	eventually(t, "pods are stopped", func() bool { return p.has("begin 30s") })
	if !l.isInhibited() {
		t.Error("logind does not wait for the pods")
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
	l, p := newFake(time.Minute), newPods()
	watchFake(t, l, p, 30*time.Second)
	eventually(t, "logind waits", l.isInhibited)
	if l.count("KillUnit") > 0 {
		t.Error("logind was reloaded although its delay is sufficient")
	}
	l.setPreparing(t, true)
	eventually(t, "pods are stopped", func() bool { return p.has("begin 30s") })
}

// TestRun_Connect checks that a watcher handles a shutdown that has started or was cancelled before
// the watcher connects, both for the first time and after a lost connection.
func TestRun_Connect(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		preparing, underWay   bool
		state, want, unwanted string
	}{
		{"began", true, false, "running", "begin 1s", "cancel"},
		{"cancelled", false, true, "running", "cancel", "begin 1s"},
		{"systemd is stopping the host", false, true, "stopping", "", "cancel"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, p := newFake(time.Minute), newPods()
			p.underWay = tt.underWay
			l.state, l.preparing = tt.state, tt.preparing
			watchFake(t, l, p, time.Second)
			eventually(t, "the watcher handles it", func() bool { return tt.want == "" && l.count("SystemState") > 0 || p.has(tt.want) })
			l.disconnect()
			eventually(t, "the watcher connects again", func() bool { return l.connections() > 1 && l.isInhibited() == !tt.preparing })
			if p.has(tt.unwanted) {
				t.Errorf("unwanted call %q", tt.unwanted)
			}
		})
	}
}

// TestRun_SpoofedSignals checks that signals of other clients of the bus neither stop nor start
// pods, and do not close the connection.
func TestRun_SpoofedSignals(t *testing.T) {
	l, p := newFake(time.Minute), newPods()
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
		t.Errorf("got cancelled %t, %d begins, %d connections, inhibited %t; want false, 1, 1, true", p.has("cancel"), p.count("begin 30s"), l.connections(), l.isInhibited())
	}
}

// TestRun_ConnectionLost checks that logind still waits and the pods continue to stop if the
// connection is lost during a shutdown.
func TestRun_ConnectionLost(t *testing.T) {
	l, p := newFake(time.Minute), newPods()
	watchFake(t, l, p, 30*time.Second)
	eventually(t, "logind waits", l.isInhibited)
	l.setPreparing(t, true)
	eventually(t, "pods are stopped", func() bool { return p.has("begin 30s") })
	l.disconnect()
	eventually(t, "stopping continues", func() bool { return p.count("begin 30s") == 2 })
	if !l.isInhibited() {
		t.Error("logind no longer waits")
	}
	close(p.stopped)
	eventually(t, "logind continues the shutdown", func() bool { return !l.isInhibited() })
}
