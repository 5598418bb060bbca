package csidriver

import (
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestApplyBehavior_Once checks that exactly one of several concurrent calls fails if one call must fail.
func TestApplyBehavior_Once(t *testing.T) {
	s := &service{Driver: &Driver{Dir: t.TempDir()}}
	for range 200 {
		if err := s.SetBehavior("NodeGetVolumeStats", "once Internal no answer"); err != nil {
			t.Fatal(err)
		}
		var failed atomic.Int32
		var calls errgroup.Group
		for range 4 {
			calls.Go(func() error {
				_, err := s.applyBehavior(t.Context(), "NodeGetVolumeStats", func() (any, error) { return nil, nil })
				if err == nil {
					return nil
				}
				failed.Add(1)
				if status.Code(err) != codes.Internal {
					return errors.New("got error " + err.Error() + ", want code Internal")
				}
				return nil
			})
		}
		if err := calls.Wait(); err != nil {
			t.Fatal(err)
		}
		if n := failed.Load(); n != 1 {
			t.Fatalf("got %d failed calls, want 1", n)
		}
	}
}
