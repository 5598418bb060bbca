package shutdown

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/plan"
)

// A fakeRouter records its calls.
type fakeRouter struct{ calls []string }

func (f *fakeRouter) Shutdown(ctx context.Context, groups []plan.ShutdownGroup) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.calls = append(f.calls, "shutdown "+groups[0].Grace.String())
	return nil
}
func (f *fakeRouter) AwaitShutdown(context.Context) error {
	f.calls = append(f.calls, "await")
	return nil
}
func (f *fakeRouter) CancelShutdown(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.calls = append(f.calls, "resume")
	return nil
}

// TestManager checks that podd continues a stored shutdown after a restart, unless the
// shutdown was cancelled or the node has booted since.
func TestManager(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	groups := []config.ShutdownGroup{{Grace: 20 * time.Second}, {Priority: 7, Grace: 10 * time.Second}}
	restart := func() (*Manager, *fakeRouter) {
		f := &fakeRouter{}
		return New(Load(dir, "this boot", log), Options{Router: f, Groups: groups, Log: log}), f
	}
	m, router := restart()
	if m.state.Groups() != nil || m.initiator() != "" {
		t.Error("got a shutdown on the first start")
	}
	for _, by := range []string{initiatorUser, initiatorLogind} { // the second call waits for the same shutdown
		if err := m.begin(t.Context(), by, m.groups); err != nil {
			t.Fatal(err)
		}
	}
	m, second := restart()
	if diff := cmp.Diff([]plan.ShutdownGroup{{Grace: 20 * time.Second}, {Priority: 7, Grace: 10 * time.Second}}, m.state.Groups()); diff != "" || m.initiator() != initiatorUser {
		t.Errorf("got initiator %q, groups (-want +got):\n%s", m.initiator(), diff)
	}
	if err := m.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, _ = restart(); m.state.Groups() != nil {
		t.Error("got a shutdown that was cancelled")
	}
	if diff := cmp.Diff([]string{"shutdown 20s", "await", "shutdown 20s", "await"}, router.calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"resume"}, second.calls); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{
		"another boot": `{"boot":"another","by":"logind","groups":[{"Priority":0,"Grace":1}]}`,
		"no groups":    `{"boot":"this boot","by":"logind"}`,
		"empty file":   "",
	} {
		if err := os.WriteFile(filepath.Join(dir, "shutdown.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, _ = restart(); m.state.Groups() != nil {
			t.Errorf("%s: got groups %v, want nil", name, m.state.Groups())
		}
	}
}

// TestManager_Restore checks that a later podd loads the shutdown although its file was
// removed. Restore must store nothing if no shutdown is in progress.
func TestManager_Restore(t *testing.T) {
	dir, log := filepath.Join(t.TempDir(), "run"), slog.New(slog.DiscardHandler)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stored := func() bool { return Load(dir, "boot", log).Groups() != nil }
	l := New(Load(dir, "boot", log), Options{Router: &fakeRouter{}, Log: log})
	if l.Restore(); stored() {
		t.Error("without a shutdown: got a stored shutdown, want none")
	}
	if err := l.Begin(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if l.Restore(); !stored() {
		t.Error("after the file was removed: got no stored shutdown")
	}
	if err := l.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.Restore(); stored() {
		t.Error("after Cancel: got a stored shutdown, want none")
	}
}

// TestManager_ClientDisconnects checks that a shutdown or its cancellation completes
// after the client has disconnected.
func TestManager_ClientDisconnects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &fakeRouter{}
	log := slog.New(slog.DiscardHandler)
	m := New(Load(t.TempDir(), "", log), Options{Router: f, Log: log})
	if err := m.begin(ctx, initiatorUser, []plan.ShutdownGroup{{Grace: time.Second}}); err != nil || m.initiator() != initiatorUser {
		t.Errorf("begin: got error %v, initiator %q", err, m.initiator())
	}
	if err := m.Cancel(ctx); err != nil || m.initiator() != "" {
		t.Errorf("Cancel: got error %v, initiator %q", err, m.initiator())
	}
	if diff := cmp.Diff([]string{"shutdown 1s", "await", "resume"}, f.calls); diff != "" {
		t.Error(diff)
	}
}

// TestScaleGroups checks that a total time is divided in proportion to the grace periods.
// Without configured groups, critical pods get a third.
func TestScaleGroups(t *testing.T) {
	graces := func(all []plan.ShutdownGroup) (out []time.Duration) {
		for _, g := range all {
			out = append(out, g.Grace)
		}
		return out
	}
	for _, tt := range []struct {
		groups []plan.ShutdownGroup
		whole  time.Duration
		want   []time.Duration
	}{
		{defaultGroups, 30 * time.Second, []time.Duration{20 * time.Second, 10 * time.Second}},
		{[]plan.ShutdownGroup{{Grace: time.Minute}, {Grace: 0}, {Grace: time.Minute}}, 10 * time.Second, []time.Duration{5 * time.Second, 0, 5 * time.Second}},
		{[]plan.ShutdownGroup{{Grace: 0}}, time.Second, []time.Duration{0}},
	} {
		if diff := cmp.Diff(tt.want, graces(scaleGroups(tt.groups, tt.whole))); diff != "" {
			t.Error(diff)
		}
	}
}
