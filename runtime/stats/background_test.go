package stats

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDiskSoon: who cannot wait gets what was measured before, of many who ask at
// once one has it measured, and nothing is measured after Close.
func TestDiskSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes, begun, ended := time.Second, 0, 0
		s := New(Options{Pods: func() []Pod { return nil }, Disk: func(ctx context.Context, _ []Pod) (*Disk, error) {
			begun++
			defer func() { ended++ }()
			select {
			case <-time.After(takes):
				return &Disk{Processes: int64(begun)}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
		ask := func(want int64, failed error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			d, err := s.DiskSoon(ctx)
			if !errors.Is(err, failed) || err == nil && d.Processes != want {
				t.Errorf("%+v, %v, want %d, %v", d, err, want, failed)
			}
		}
		takes = 3 * time.Second
		ask(0, context.DeadlineExceeded)
		time.Sleep(2 * time.Second)
		ask(1, nil)
		time.Sleep(5 * time.Minute)
		ask(1, nil) // stale, but there
		ask(2, nil)
		time.Sleep(5 * time.Minute)
		takes = time.Hour
		ask(2, nil)
		ask(2, nil)
		if s.Close(); begun != 3 || ended != 3 {
			t.Errorf("begun %d times, ended %d times", begun, ended)
		}
		ask(0, errClosed)
	})
}
