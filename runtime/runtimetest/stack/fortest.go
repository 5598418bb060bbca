package stack

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"
)

// ForTest starts a stack for a test or benchmark and destroys the stack at its end. If o.Dir is
// empty, the stack uses a new directory with a short path. Destroying the stack also removes
// running pods. A test that checks whether its pods were removed calls Leftovers at its end. If the
// user is not root, ForTest skips the test.
func ForTest(t testing.TB, o Options) *Stack {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("starting a container runtime requires root")
	}
	if o.Dir == "" {
		// Do not use t.TempDir, because its path contains the test's name and can be too long for
		// sockets.
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
		// Use another context, because the context of t is done here.
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if t.Failed() {
			t.Logf("end of %s's log: %s", s.Program(), s.logTail())
		}
		if err := s.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}
