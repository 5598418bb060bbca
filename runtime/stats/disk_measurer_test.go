package stats

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDisksWithin checks that a caller whose ctx is done gets the previous result while the
// measurement continues, and that nothing is measured after Close.
func TestDisksWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes, begun, ended := time.Second, 0, 0
		s := New(Options{Pods: func() []Pod { return nil }, MeasureDisk: func(ctx context.Context, _ []Pod) (*Disk, error) {
			begun++
			defer func() { ended++ }()
			select {
			case <-time.After(takes):
				return &Disk{ProcessCount: int64(begun)}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
		measure := func(want int64, failed error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			d, err := s.MeasureDisksWithin(ctx)
			if !errors.Is(err, failed) || err == nil && d.ProcessCount != want {
				t.Errorf("got %+v, error %v; want the result of measurement %d, error %v", d, err, want, failed)
			}
		}
		takes = 3 * time.Second
		measure(0, context.DeadlineExceeded)
		time.Sleep(2 * time.Second)
		measure(1, nil)
		time.Sleep(5 * time.Minute)
		measure(1, nil) // the previous result, because the new measurement takes longer than 2 s
		measure(2, nil)
		time.Sleep(5 * time.Minute)
		takes = time.Hour
		measure(2, nil)
		measure(2, nil)
		if s.Close(); begun != 3 || ended != 3 {
			t.Errorf("measurements after Close: got %d begun and %d ended; want 3 of each", begun, ended)
		}
		measure(0, errClosed)
	})
}
