package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A fakeRuntime exits one minute after each start. Its second restart fails.
type fakeRuntime struct{ starts int }

func (f *fakeRuntime) Program() string { return "containerd" }

func (f *fakeRuntime) WaitForExit(ctx context.Context) error {
	uptime := time.Minute
	if f.starts == 2 {
		uptime = 0
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(uptime):
		return nil
	}
}

func (f *fakeRuntime) Restart(context.Context) error {
	f.starts++
	if f.starts == 2 {
		return errors.New("starting containerd: no space left on device")
	}
	return nil
}

// TestSuperviseRuntime checks that superviseRuntime restarts the runtime after each exit, tries again
// after a failed restart, and returns when ctx is done.
func TestSuperviseRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute-time.Second)
		defer cancel()
		var got []string
		begin := time.Now()
		superviseRuntime(ctx, &fakeRuntime{}, func(line string) { got = append(got, time.Since(begin).String()+" "+line) })
		want := []string{
			"1m0s ! containerd has exited; starting it again",
			"1m0s + containerd is running again",
			"2m5s ! containerd has exited; starting it again",
			"2m5s ! starting containerd: no space left on device; trying again in 5s",
			"2m10s ! containerd has exited; starting it again",
			"2m10s + containerd is running again",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
	})
}
