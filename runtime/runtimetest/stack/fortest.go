package stack

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"
)

// ForTest starts a stack for a test or benchmark and destroys it at its end,
// in a short directory of its own when o.Dir is empty. What a test leaves
// running is removed with it; to see whether it did, ask Leftovers before.
// Without root the test is skipped.
func ForTest(t testing.TB, o Options) *Stack {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a container runtime needs root")
	}
	if o.Dir == "" {
		// t.TempDir has the test's name in it, which makes it too long for sockets.
		dir, err := os.MkdirTemp("", "podd-")
		if err != nil {
			t.Fatal(err)
		}
		o.Dir = dir
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// t's own context has ended here.
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if t.Failed() {
			t.Logf("the end of containerd's log: %s", s.logTail())
		}
		if err := s.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}
