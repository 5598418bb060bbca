//go:build e2e

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

// TestFaultLaterCallFails is like TestFaultCallFails, but the calls in the field later of each scenario
// fail.
func TestFaultLaterCallFails(t *testing.T) {
	t.Parallel()
	lifeScenario.runAroundCalls(t, lifeScenario.later, testCallFails)
	useScenario.runAroundCalls(t, useScenario.firstCalls(), testCallFails)
}

// runAroundAllCalls runs two parallel subtests for each call of all scenarios: one with a fault before
// the call, and one with a fault after it.
func runAroundAllCalls(t *testing.T, test func(t *testing.T, s faultScenario, c call, at moment)) {
	for _, s := range faultScenarios {
		s.runAroundCalls(t, slices.Concat(s.firstCalls(), s.later), test)
	}
}

// TestFaultCallIsSlow delays each call by 30 s, once before and once after the runtime has executed the
// call.
func TestFaultCallIsSlow(t *testing.T) {
	t.Parallel()
	runAroundAllCalls(t, func(t *testing.T, s faultScenario, c call, at moment) {
		ended := make(chan struct{})
		d := newDaemon(t, shared)
		t.Cleanup(func() { close(ended) })
		s.runWithFault(d, c, fault{at: at, apply: func() bool {
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

// TestFaultCallHangs makes each call hang forever, before or after it reaches the runtime. If the call
// has a deadline, the pod must start and stop nevertheless. If podd makes the call without a deadline,
// the pod waits for the call, and the test checks that the pod can be removed.
func TestFaultCallHangs(t *testing.T) {
	t.Parallel()
	runAroundAllCalls(t, func(t *testing.T, s faultScenario, c call, at moment) {
		ended := make(chan struct{})
		d := newDaemon(t, shared, "--runtime-request-timeout=10s")
		t.Cleanup(func() { close(ended) })
		hang := fault{at: at, apply: func() bool { <-ended; return true }}
		if slices.Contains(s.unlimited, c.Method) {
			s.runUntilRemoved(d, c, hang)
			return
		}
		s.runWithFault(d, c, hang)
	})
}

// TestFaultRuntimeDiesInCall kills and restarts the runtime in two subtests for each call: one before
// the call, and one after it.
func TestFaultRuntimeDiesInCall(t *testing.T) {
	t.Parallel()
	runAroundAllCalls(t, func(t *testing.T, s faultScenario, c call, at moment) {
		d := newDaemon(t, stack.ForTest(t, stack.Options{}))
		// apply runs in a goroutine of the proxy. It may use the stack, because the test's goroutine only
		// waits for podd during this time.
		s.runWithFault(d, c, fault{at: at, apply: func() bool {
			ctx := t.Context()
			if err := errors.Join(d.on.Kill(ctx), d.on.Restart(ctx)); err != nil {
				t.Error(err)
			}
			return true
		}})
	})
}

// TestFaultRuntimeIsStopped suspends the runtime's process with SIGSTOP for a minute while 50 pods
// run. podd must report that the runtime does not respond. After the runtime continues, podd must start
// a pod that was added in the meantime, and must not restart any container.
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
		t.Fatalf("before the runtime is suspended: got %d running containers, want %d", len(was), n)
	}
	if err := d.on.Pause(); err != nil {
		t.Fatal(err)
	}
	stopped := time.NewTimer(time.Minute)
	d.apply(d.pod("late", shell("main", serve("late"))))
	d.until("podd reports that the runtime does not respond", func(v *server.View) error {
		for _, p := range v.Problems {
			if containsAll(p.Message, []string{"containerd"}) {
				return nil
			}
		}
		return fmt.Errorf("got problems %q, want one with \"containerd\"", problems(v))
	})
	<-stopped.C
	if err := d.on.Resume(); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("late")
	d.until("all pods are ready", func(v *server.View) error { return allReady(v, n+1) })
	now := d.runningIDs()
	for _, id := range was {
		if !slices.Contains(now, id) {
			t.Errorf("after the runtime was suspended: got the running containers %q, want %s among them", now, id)
		}
	}
}

// runningIDs returns the IDs of the daemon's running containers.
func (d *daemon) runningIDs() (all []string) {
	d.t.Helper()
	now, err := d.inventory(d.t.Context())
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
