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
	f.calls = append(f.calls, "cancel")
	return nil
}

// TestManager checks that podd continues a stored shutdown after a restart, unless the
// shutdown was cancelled or the node has booted since.
func TestManager(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	groups := []config.ShutdownGroup{{Grace: 20 * time.Second}, {Priority: 7, Grace: 10 * time.Second}}
	// restart returns the Manager of a new podd process, and the router of this Manager.
	restart := func() (*Manager, *fakeRouter) {
		f := &fakeRouter{}
		return New(Load(dir, "this boot", log), Options{Router: f, Groups: groups, TimesPath: filepath.Join(dir, TimesFile), OnTimes: func(_, _ time.Time) {}, Log: log}), f
	}
	m, first := restart()
	if m.state.Groups() != nil || m.initiator() != "" {
		t.Errorf("first start: got groups %v, initiator %q, want no shutdown", m.state.Groups(), m.initiator())
	}
	for _, initiator := range []string{initiatorUser, initiatorLogind} { // the second call only waits for the shutdown that the first call has started
		if err := m.begin(t.Context(), initiator, m.groups); err != nil {
			t.Fatal(err)
		}
	}
	m, second := restart()
	if diff := cmp.Diff([]plan.ShutdownGroup{{Grace: 20 * time.Second}, {Priority: 7, Grace: 10 * time.Second}}, m.state.Groups()); diff != "" || m.initiator() != initiatorUser {
		t.Errorf("after a restart: got initiator %q, want %q; groups (-want +got):\n%s", m.initiator(), initiatorUser, diff)
	}
	for range 2 { // the second call has no effect
		if err := m.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if m, _ = restart(); m.state.Groups() != nil {
		t.Errorf("restart after Cancel: got groups %v, want no shutdown", m.state.Groups())
	}
	if diff := cmp.Diff([]string{"shutdown 20s", "await", "shutdown 20s", "await"}, first.calls); diff != "" {
		t.Errorf("calls of the router before the restart (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cancel"}, second.calls); diff != "" {
		t.Errorf("calls of the router after the restart (-want +got):\n%s", diff)
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

// TestManager_Restore checks that Restore writes the file of a shutdown again after the file was
// removed, so that the next podd process can load it. Without a shutdown, Restore must write no file.
func TestManager_Restore(t *testing.T) {
	dir, log := filepath.Join(t.TempDir(), "run"), slog.New(slog.DiscardHandler)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	isStored := func() bool { return Load(dir, "boot", log).Groups() != nil }
	m := New(Load(dir, "boot", log), Options{Router: &fakeRouter{}, TimesPath: filepath.Join(t.TempDir(), TimesFile), OnTimes: func(_, _ time.Time) {}, Log: log})
	if m.Restore(); isStored() {
		t.Error("without a shutdown: got a stored shutdown, want none")
	}
	if err := m.Begin(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if m.Restore(); !isStored() {
		t.Error("after the file was removed: got no stored shutdown, want one")
	}
	if err := m.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.Restore(); isStored() {
		t.Error("after Cancel: got a stored shutdown, want none")
	}
}

// TestManager_ClientDisconnects checks that begin starts a shutdown, and that Cancel cancels the shutdown,
// even if the context is canceled because the client has disconnected.
func TestManager_ClientDisconnects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &fakeRouter{}
	log := slog.New(slog.DiscardHandler)
	m := New(Load(t.TempDir(), "", log), Options{Router: f, TimesPath: filepath.Join(t.TempDir(), TimesFile), OnTimes: func(_, _ time.Time) {}, Log: log})
	if err := m.begin(ctx, initiatorUser, []plan.ShutdownGroup{{Grace: time.Second}}); err != nil || m.initiator() != initiatorUser {
		t.Errorf("begin: got error %v, initiator %q, want no error and %q", err, m.initiator(), initiatorUser)
	}
	if err := m.Cancel(ctx); err != nil || m.initiator() != "" {
		t.Errorf("Cancel: got error %v, initiator %q, want neither", err, m.initiator())
	}
	if diff := cmp.Diff([]string{"shutdown 1s", "await", "cancel"}, f.calls); diff != "" {
		t.Errorf("calls of the router (-want +got):\n%s", diff)
	}
}

// TestScaleGroups checks that a total time is divided among the groups in proportion to their grace
// periods. With defaultGroups, critical pods get a third.
func TestScaleGroups(t *testing.T) {
	graces := func(all []plan.ShutdownGroup) (out []time.Duration) {
		for _, g := range all {
			out = append(out, g.Grace)
		}
		return out
	}
	for _, tt := range []struct {
		groups []plan.ShutdownGroup
		total  time.Duration
		want   []time.Duration
	}{
		{defaultGroups, 30 * time.Second, []time.Duration{20 * time.Second, 10 * time.Second}},
		{[]plan.ShutdownGroup{{Grace: time.Minute}, {Grace: 0}, {Grace: time.Minute}}, 10 * time.Second, []time.Duration{5 * time.Second, 0, 5 * time.Second}},
		{[]plan.ShutdownGroup{{Grace: 0}}, time.Second, []time.Duration{0}},
	} {
		if diff := cmp.Diff(tt.want, graces(scaleGroups(tt.groups, tt.total))); diff != "" {
			t.Errorf("%v divided among %+v (-want +got):\n%s", tt.total, tt.groups, diff)
		}
	}
}
