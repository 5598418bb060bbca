package shutdown

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// slowRouter stops all pods in a minute, unless ctx is done.
type slowRouter struct{ fakeRouter }

func (*slowRouter) AwaitShutdown(ctx context.Context) error {
	select {
	case <-time.After(time.Minute):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestManager_Times checks the times of shutdowns that end, are cancelled or are interrupted, also
// after a restart of podd.
func TestManager_Times(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, test := range []struct {
		name        string
		stored      string // content of the TimesFile
		run         func(context.Context, *Manager)
		want        []string // seconds from the beginning of the test until the start and end of a shutdown
		wantRestart []string
	}{
		{"no shutdown", "", func(context.Context, *Manager) {}, nil, nil},
		{"ended", "", func(ctx context.Context, m *Manager) { _ = m.Begin(ctx, 0); _ = m.Begin(ctx, 0) }, []string{"0 none", "0 60"}, []string{"0 60"}},
		{"cancelled", "", func(ctx context.Context, m *Manager) {
			short, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_ = m.Begin(short, 0)
			_ = m.Cancel(ctx)
			_ = m.Cancel(ctx)
		}, []string{"0 none", "0 10"}, []string{"0 10"}},
		{"interrupted", "", func(ctx context.Context, m *Manager) {
			short, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_ = m.Begin(short, 0)
		}, []string{"0 none"}, []string{"0 none"}},
		{"of a kubelet", `{"startTime":"1999-12-31T23:59:00Z","endTime":"1999-12-31T23:59:30Z"}`, func(context.Context, *Manager) {}, []string{"-60 -30"}, []string{"-60 -30"}},
		{"invalid file", "{", func(context.Context, *Manager) {}, nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir, began := t.TempDir(), time.Now()
			path := filepath.Join(dir, TimesFile)
			if test.stored != "" {
				if err := os.WriteFile(path, []byte(test.stored), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			start := func() *Manager {
				got = nil
				return New(Load(dir, "boot", log), Options{Router: &slowRouter{}, TimesPath: path, Log: log, OnTimes: func(start, end time.Time) {
					until := "none"
					if !end.IsZero() {
						until = fmt.Sprint(end.Sub(began).Seconds())
					}
					got = append(got, fmt.Sprint(start.Sub(began).Seconds())+" "+until)
				}})
			}
			test.run(t.Context(), start())
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: got times %q, want %q", test.name, got, test.want)
			}
			if start(); !slices.Equal(got, test.wantRestart) {
				t.Errorf("%s: after a restart: got times %q, want %q", test.name, got, test.wantRestart)
			}
		})
	}
}
