//go:build e2e && faults

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/runtimetest/stack"
	"podd/server"
)

// TestFaultLaterCallFails is TestFaultCallFails for the other calls.
func TestFaultLaterCallFails(t *testing.T) {
	t.Parallel()
	life.around(t, life.later, testCallFails)
	use.around(t, use.firstCalls(), testCallFails)
}

// aroundAll runs two parallel subtests for each call of all stories.
func aroundAll(t *testing.T, test func(t *testing.T, s faultStory, c call, at moment)) {
	for _, s := range faultStories {
		s.around(t, slices.Concat(s.firstCalls(), s.later), test)
	}
}

// TestFaultCallIsSlow delays each call by 30 s, before and after the runtime has carried it
// out.
func TestFaultCallIsSlow(t *testing.T) {
	t.Parallel()
	aroundAll(t, func(t *testing.T, s faultStory, c call, at moment) {
		ended := make(chan struct{})
		d := newDaemon(t, shared)
		t.Cleanup(func() { close(ended) })
		s.suffer(d, c, fault{at: at, strike: func() bool {
			late := time.NewTimer(30 * time.Second)
			defer late.Stop()
			select {
			case <-late.C:
			case <-ended:
			}
			return false
		}})
	})
}

// TestFaultCallHangs never returns from each call, which reaches the runtime or not. Without
// a deadline the pod waits for it, so that it can only be removed.
func TestFaultCallHangs(t *testing.T) {
	t.Parallel()
	aroundAll(t, func(t *testing.T, s faultStory, c call, at moment) {
		ended := make(chan struct{})
		d := newDaemon(t, shared, "--runtime-request-timeout=10s")
		t.Cleanup(func() { close(ended) })
		hang := fault{at: at, strike: func() bool { <-ended; return true }}
		if slices.Contains(s.unlimited, c.Method) {
			s.sufferUntilRemoved(d, c, hang)
			return
		}
		s.suffer(d, c, hang)
	})
}

// TestFaultRuntimeDiesInCall kills the runtime before and after each call, and starts it
// again.
func TestFaultRuntimeDiesInCall(t *testing.T) {
	t.Parallel()
	aroundAll(t, func(t *testing.T, s faultStory, c call, at moment) {
		d := newDaemon(t, stack.ForTest(t, stack.Options{}))
		// The test's goroutine waits for podd meanwhile and leaves the stack alone.
		s.suffer(d, c, fault{at: at, strike: func() bool {
			ctx := t.Context()
			if err := errors.Join(d.on.Kill(ctx), d.on.Restart(ctx)); err != nil {
				t.Error(err)
			}
			return true
		}})
	})
}

// TestFaultRuntimeIsStopped stops the runtime's process for a minute under 50 pods.
// podd says so and goes on when it continues, and no container restarts.
func TestFaultRuntimeIsStopped(t *testing.T) {
	const n = 50
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.start()
	for i := range n {
		d.apply(d.pod(fmt.Sprint("p", i), shell("main", serve(fmt.Sprint("p", i)))))
	}
	for i := range n {
		d.untilApplied(fmt.Sprint("p", i))
	}
	was := d.runningIDs()
	if len(was) != n {
		t.Fatalf("%d containers run, want %d", len(was), n)
	}
	if err := d.on.Pause(); err != nil {
		t.Fatal(err)
	}
	stopped := time.NewTimer(time.Minute)
	d.apply(d.pod("late", shell("main", serve("late"))))
	d.until("podd says that the runtime does not answer", func(v *server.View) error {
		for _, p := range v.Problems {
			if hasAll(p.Message, []string{"containerd"}) {
				return nil
			}
		}
		return fmt.Errorf("the problems are %q", problems(v))
	})
	<-stopped.C
	if err := d.on.Resume(); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("late")
	d.until("all are ready", func(v *server.View) error { return allReady(v, n+1) })
	now := d.runningIDs()
	for _, id := range was {
		if !slices.Contains(now, id) {
			t.Errorf("container %s does not run any more", id)
		}
	}
}

// runningIDs are the containers of the daemon that run.
func (d *daemon) runningIDs() (all []string) {
	d.t.Helper()
	now, err := d.look(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range now.containers {
		if c.GetState() == cri.ContainerState_CONTAINER_RUNNING {
			all = append(all, c.GetId())
		}
	}
	return all
}
