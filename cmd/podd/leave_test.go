package main

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

// fakeRouter notes what it is asked.
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

// TestLeave: a shutdown is known to the podd that comes after, until it is cancelled
// or the machine has booted.
func TestLeave(t *testing.T) {
	cfg := &config.Config{RunDir: t.TempDir(), Shutdown: []config.ShutdownGroup{{Grace: 20 * time.Second}, {Priority: 7, Grace: 10 * time.Second}}}
	life := func() (*leaver, *fakeRouter) {
		l, f := newLeaver(cfg, slog.New(slog.DiscardHandler)), &fakeRouter{}
		l.router = f
		return l, f
	}
	l, router := life()
	if l.underWay() != nil || l.by() != "" {
		t.Error("it begins with a shutdown")
	}
	for _, by := range []string{byUser, byLogind} { // the second one joins
		if err := l.begin(t.Context(), by, l.groups); err != nil {
			t.Fatal(err)
		}
	}
	l, again := life()
	if diff := cmp.Diff([]plan.ShutdownGroup{{Grace: 20 * time.Second}, {Priority: 7, Grace: 10 * time.Second}}, l.underWay()); diff != "" || l.by() != byUser {
		t.Errorf("by %q: %s", l.by(), diff)
	}
	if err := l.cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, _ = life(); l.underWay() != nil {
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
		"no groups":    `{"boot":"` + l.boot + `","by":"logind"}`,
		"nothing":      "",
	} {
		if err := os.WriteFile(filepath.Join(cfg.RunDir, "shutdown.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, _ = life(); l.underWay() != nil {
			t.Errorf("%s: it is taken up", name)
		}
	}
}

// TestLeaveWithoutWhoAsked: who asks for a shutdown, or its end, and leaves at once gets
// the whole of it.
func TestLeaveWithoutWhoAsked(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	f := &fakeRouter{}
	l := newLeaver(&config.Config{RunDir: t.TempDir()}, slog.New(slog.DiscardHandler))
	l.router = f
	if err := l.begin(gone, byUser, []plan.ShutdownGroup{{Grace: time.Second}}); err != nil || l.by() != byUser {
		t.Errorf("by %q: %v", l.by(), err)
	}
	if err := l.cancel(gone); err != nil || l.by() != "" {
		t.Errorf("by %q: %v", l.by(), err)
	}
	if diff := cmp.Diff([]string{"shutdown 1s", "await", "resume"}, f.asked); diff != "" {
		t.Error(diff)
	}
}

// TestShared: a time in all is shared as the groups have it, or one part in three is
// for the system's.
func TestShared(t *testing.T) {
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
		{unbounded, 30 * time.Second, []time.Duration{20 * time.Second, 10 * time.Second}},
		{[]plan.ShutdownGroup{{Grace: time.Minute}, {Grace: 0}, {Grace: time.Minute}}, 10 * time.Second, []time.Duration{5 * time.Second, 0, 5 * time.Second}},
		{[]plan.ShutdownGroup{{Grace: 0}}, time.Second, []time.Duration{0}},
	} {
		if diff := cmp.Diff(tt.want, graces(shared(tt.groups, tt.whole))); diff != "" {
			t.Error(diff)
		}
	}
}
