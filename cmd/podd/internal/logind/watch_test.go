package logind

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// keeper is who ends pods for a watcher.
type keeper struct {
	mu       sync.Mutex // guards the following
	told     []string
	underWay bool
	ended    chan struct{} // closed when the pods have ended
}

func (k *keeper) note(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, what)
}

func (k *keeper) has(what string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.told, what)
}

func (k *keeper) count(what string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.told {
		if t == what {
			n++
		}
	}
	return n
}

func (k *keeper) leaves(is bool) { k.mu.Lock(); defer k.mu.Unlock(); k.underWay = is }

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// watchFake starts a watcher of l until the test ends.
func watchFake(t *testing.T, l *fakeLogind, k *keeper, period time.Duration) (dropIn string) {
	dropIn = filepath.Join(t.TempDir(), "conf.d", "99-kubelet.conf")
	l.dropIn = dropIn
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{
			Address: l.serve(t), DropIn: dropIn, Period: period, Log: slog.New(slog.DiscardHandler),
			Begin: func(ctx context.Context, within time.Duration) error {
				k.note("begin " + within.String())
				k.leaves(true)
				select {
				case <-ctx.Done():
				case <-k.ended:
				}
				return ctx.Err()
			},
			Cancel:   func(context.Context) error { k.note("cancel"); k.leaves(false); return nil },
			UnderWay: func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.underWay },
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

// TestShutdown: logind waits until the pods have ended, for longer than it would by
// itself; a shutdown that is cancelled has it wait for the next one again.
func TestShutdown(t *testing.T) {
	l, k := newFake(5*time.Second), &keeper{ended: make(chan struct{})}
	dropIn := watchFake(t, l, k, 30*time.Second)
	eventually(t, "logind waits", l.inhibited)
	text, err := os.ReadFile(dropIn)
	if err != nil || !strings.Contains(string(text), "[Login]\nInhibitDelayMaxSec=30\n") {
		t.Errorf("the drop-in: %q, %v", text, err)
	}
	l.prepare(t, true)
	eventually(t, "the pods end", func() bool { return k.has("begin 30s") })
	if !l.inhibited() {
		t.Error("logind does not wait for the pods")
	}
	l.prepare(t, false)
	eventually(t, "the pods run again", func() bool { return k.has("cancel") })
	l.prepare(t, true)
	close(k.ended)
	eventually(t, "logind goes on", func() bool { return !l.inhibited() })
	l.prepare(t, false)
	eventually(t, "logind waits again", l.inhibited)
}

// TestShortDelay: pods get what logind gives.
func TestShortDelay(t *testing.T) {
	l, k := newFake(time.Minute), &keeper{ended: make(chan struct{})}
	watchFake(t, l, k, 30*time.Second)
	eventually(t, "logind waits", l.inhibited)
	if l.count("KillUnit") > 0 {
		t.Error("logind was told to read a configuration that nobody changed")
	}
	l.prepare(t, true)
	eventually(t, "the pods end", func() bool { return k.has("begin 30s") })
}

// TestAway: what came of a shutdown while podd was away, or the bus, is read.
func TestAway(t *testing.T) {
	for _, tt := range []struct {
		name               string
		prepares, underWay bool
		state, want, not   string
	}{
		{"it began", true, false, "running", "begin 1s", "cancel"},
		{"it was cancelled", false, true, "running", "cancel", "begin 1s"},
		{"it is past cancelling", false, true, "stopping", "", "cancel"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, k := newFake(time.Minute), &keeper{ended: make(chan struct{}), underWay: tt.underWay}
			l.state, l.preparing = tt.state, tt.prepares
			watchFake(t, l, k, time.Second)
			eventually(t, "it is told", func() bool { return tt.want == "" && l.asked("SystemState") || k.has(tt.want) })
			l.hangUp()
			eventually(t, "it connects again", func() bool { return l.connections() > 1 && l.inhibited() == !tt.prepares })
			if k.has(tt.not) {
				t.Errorf("it did %s", tt.not)
			}
		})
	}
}

// TestOthersSignals: what others on the bus say in logind's place ends no pod, has
// none run again, and costs no connection.
func TestOthersSignals(t *testing.T) {
	l, k := newFake(time.Minute), &keeper{ended: make(chan struct{})}
	watchFake(t, l, k, 30*time.Second)
	eventually(t, "logind waits", l.inhibited)
	l.spoof(t, "org.freedesktop.DBus", "NameAcquired", ":1.1")
	reads := func() int { return l.count("PreparingForShutdown") }
	for _, body := range [][]any{{true}, {false}, {"text"}, nil} {
		before := reads()
		l.spoof(t, manager, "PrepareForShutdown", body...)
		eventually(t, "it asks logind", func() bool { return reads() > before })
	}
	l.prepare(t, true)
	eventually(t, "the pods end", func() bool { return k.has("begin 30s") })
	before := reads()
	l.spoof(t, manager, "PrepareForShutdown", false)
	eventually(t, "it asks logind", func() bool { return reads() > before })
	if k.has("cancel") || k.count("begin 30s") != 1 || l.connections() != 1 || !l.inhibited() {
		t.Errorf("cancelled: %t, begun %d times, %d connections; logind waits: %t", k.has("cancel"), k.count("begin 30s"), l.connections(), l.inhibited())
	}
}

// TestLostBus: logind waits on though the bus is gone, and the pods end on.
func TestLostBus(t *testing.T) {
	l, k := newFake(time.Minute), &keeper{ended: make(chan struct{})}
	watchFake(t, l, k, 30*time.Second)
	eventually(t, "logind waits", l.inhibited)
	l.prepare(t, true)
	eventually(t, "the pods end", func() bool { return k.has("begin 30s") })
	l.hangUp()
	eventually(t, "they end on", func() bool { return k.count("begin 30s") == 2 })
	if !l.inhibited() {
		t.Error("logind does not wait any more")
	}
	close(k.ended)
	eventually(t, "logind goes on", func() bool { return !l.inhibited() })
}
