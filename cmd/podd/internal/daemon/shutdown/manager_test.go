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

// fakeRouter records its calls.
type fakeRouter struct{ asked []string }

func (f *fakeRouter) Shutdown(ctx context.Context, groups []plan.ShutdownGroup) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.asked = append(f.asked, "shutdown "+groups[0].Grace.String())
	return nil
}
func (f *fakeRouter) AwaitShutdown(context.Context) error {
	f.asked = append(f.asked, "await")
	return nil
}
func (f *fakeRouter) Resume(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.asked = append(f.asked, "resume")
	return nil
}

// TestManager checks that a later podd loads the shutdown, until it is cancelled or
// the node has booted.
func TestManager(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	groups := []config.ShutdownGroup{{Grace: 20 * time.Second}, {Priority: 7, Grace: 10 * time.Second}}
	life := func() (*Manager, *fakeRouter) {
		f := &fakeRouter{}
		return New(Load(dir, "this boot", log), Options{Router: f, Groups: groups, Log: log}), f
	}
	l, router := life()
	if l.state.Groups() != nil || l.initiator() != "" {
		t.Error("it begins with a shutdown")
	}
	for _, by := range []string{byUser, byLogind} { // the second one joins
		if err := l.begin(t.Context(), by, l.groups); err != nil {
			t.Fatal(err)
		}
	}
	l, again := life()
	if diff := cmp.Diff([]plan.ShutdownGroup{{Grace: 20 * time.Second}, {Priority: 7, Grace: 10 * time.Second}}, l.state.Groups()); diff != "" || l.initiator() != byUser {
		t.Errorf("by %q: %s", l.initiator(), diff)
	}
	if err := l.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, _ = life(); l.state.Groups() != nil {
		t.Error("a cancelled shutdown is taken up")
	}
	if diff := cmp.Diff([]string{"shutdown 20s", "await", "shutdown 20s", "await"}, router.asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"resume"}, again.asked); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{
		"another boot": `{"boot":"another","by":"logind","groups":[{"Priority":0,"Grace":1}]}`,
		"no groups":    `{"boot":"this boot","by":"logind"}`,
		"nothing":      "",
	} {
		if err := os.WriteFile(filepath.Join(dir, "shutdown.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, _ = life(); l.state.Groups() != nil {
			t.Errorf("%s: it is taken up", name)
		}
	}
}

// TestManager_Restore checks that a later podd loads the shutdown although its file was
// removed, and that Restore stores no shutdown that is not in progress.
func TestManager_Restore(t *testing.T) {
	dir, log := filepath.Join(t.TempDir(), "run"), slog.New(slog.DiscardHandler)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stored := func() bool { return Load(dir, "boot", log).Groups() != nil }
	l := New(Load(dir, "boot", log), Options{Router: &fakeRouter{}, Log: log})
	if l.Restore(); stored() {
		t.Error("without a shutdown: one is stored")
	}
	if err := l.Begin(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if l.Restore(); !stored() {
		t.Error("the file was removed: it is not stored again")
	}
	if err := l.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.Restore(); stored() {
		t.Error("a cancelled shutdown is stored")
	}
}

// TestManager_ClientDisconnects checks that a shutdown or its cancellation completes
// after the client has disconnected.
func TestManager_ClientDisconnects(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	f := &fakeRouter{}
	log := slog.New(slog.DiscardHandler)
	l := New(Load(t.TempDir(), "", log), Options{Router: f, Log: log})
	if err := l.begin(gone, byUser, []plan.ShutdownGroup{{Grace: time.Second}}); err != nil || l.initiator() != byUser {
		t.Errorf("by %q: %v", l.initiator(), err)
	}
	if err := l.Cancel(gone); err != nil || l.initiator() != "" {
		t.Errorf("by %q: %v", l.initiator(), err)
	}
	if diff := cmp.Diff([]string{"shutdown 1s", "await", "resume"}, f.asked); diff != "" {
		t.Error(diff)
	}
}

// TestScaleGroups checks that a total time is divided in proportion, and that critical
// pods get a third without configured groups.
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
		{unboundedGroups, 30 * time.Second, []time.Duration{20 * time.Second, 10 * time.Second}},
		{[]plan.ShutdownGroup{{Grace: time.Minute}, {Grace: 0}, {Grace: time.Minute}}, 10 * time.Second, []time.Duration{5 * time.Second, 0, 5 * time.Second}},
		{[]plan.ShutdownGroup{{Grace: 0}}, time.Second, []time.Duration{0}},
	} {
		if diff := cmp.Diff(tt.want, graces(scaleGroups(tt.groups, tt.whole))); diff != "" {
			t.Error(diff)
		}
	}
}
