//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
	"podd/server"
)

func TestRuntimeIsKilledUnderPods(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.start()
	r, ref := withRegistry(d, registry.Options{})
	d.apply(d.pod("steady", shell("main", serve("steady"))), d.pod("dies", shell("main", serve("dies"))))
	withGrace(d, 5, "going", stubborn("going"))
	d.untilApplied("steady")
	d.untilApplied("dies")
	job := once(d.pod("job", shell("main", note("job runs")+"while ! [ -e /trace/go ]; do sleep 0.05; done; exit 5")), v1.RestartPolicyNever)
	d.apply(job)
	d.untilJournal("job runs")
	d.untilJournal("going runs")
	steady, dies := d.runs("steady", "main"), d.runs("dies", "main")

	// One is being pulled, one is being stopped, when the runtime dies.
	r.Inject(registry.Fault{In: "/manifests/"})
	d.apply(d.pod("coming", from(ref, shell("main", serve("coming")))))
	d.eventually("the pull hangs", func() error {
		if r.Hanging() == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	d.remove("going")
	d.untilJournal("going TERM")
	if err := d.on.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Heal()
	d.untilSays("steady", d.on.Socket())

	// What happens without it is seen when it is back.
	if err := syscall.Kill(dies.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.tellPods("go")
	d.apply(d.pod("late", shell("main", serve("late"))))
	if err := d.on.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.untilGone("going")
	d.untilApplied("coming")
	d.untilApplied("late")
	d.untilPod("runs again", "dies", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 || !p.Ready {
			return fmt.Errorf("%d restarts, ready %v", n, p.Ready)
		}
		return nil
	})
	d.untilPod("failed", "job", inPhase(v1.PodFailed))
	d.untilApplied("steady")
	if now := d.runs("steady", "main"); now != steady {
		t.Errorf("it is now %+v, was %+v", now, steady)
	}
}

func TestRuntimeIsAbsentAtStart(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	if err := d.on.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.start()
	d.untilSays("web", d.on.Socket())
	if err := d.on.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	// Killed before it has answered for the first time, and after.
	was := d.runs("web", "main")
	d.kill()
	if err := d.on.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.untilSays("web", d.on.Socket())
	if err := d.on.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	if now := d.runs("web", "main"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
}

func TestNetworkIsAbsent(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	if err := d.on.DisconnectNetwork(); err != nil {
		t.Fatal(err)
	}
	d.start()
	host := d.pod("host", shell("main", serve("host")))
	host.Spec.HostNetwork = true
	d.apply(host, d.pod("web", shell("main", serve("web"))))
	d.untilApplied("host")
	d.untilSays("web", "network")
	if err := d.on.ConnectNetwork(); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
}

// untilSays waits until podd says something of a pod that has word in it, and
// returns it.
func (d *daemon) untilSays(pod, word string) string {
	d.t.Helper()
	p := d.untilPod("has "+word+" in its reason", pod, func(p *server.PodView) error {
		if !hasAll(p.Why, []string{word}) {
			return fmt.Errorf("it is %q", p.Why)
		}
		return nil
	})
	return p.Why
}
