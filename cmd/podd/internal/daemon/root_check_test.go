package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchRoot checks that podd stops a few seconds after its root directory was replaced,
// and not before.
func TestWatchRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, replaced := time.Now(), errors.New("replaced")
		const at = time.Minute
		err := watchRoot(t.Context(), func() error {
			if time.Since(began) < at {
				return nil
			}
			return replaced
		})
		if took := time.Since(began); !errors.Is(err, replaced) || took < at || took > at+5*time.Second {
			t.Errorf("got %v after %v, want %v within 5s after %v", err, took, replaced, at)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := watchRoot(ctx, func() error { return replaced }); err != nil {
			t.Errorf("after the end: got %v, want nil", err)
		}
	})
}
