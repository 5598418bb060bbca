package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchRoot checks that watchRoot returns the error of a replaced root directory within 5 seconds
// after the replacement, and not before. It must return nil if podd is stopping.
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
			t.Errorf("got error %v after %v, want %v after %v to %v", err, took, replaced, at, at+5*time.Second)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := watchRoot(ctx, func() error { return replaced }); err != nil {
			t.Errorf("canceled context: got error %v, want none", err)
		}
	})
}
