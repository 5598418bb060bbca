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
	startWithGracePeriod(d, 5, "going", ignoreTerm("going"))
	d.untilApplied("steady")
	d.untilApplied("dies")
	job := withRestartPolicy(d.pod("job", shell("main", note("job runs")+"while ! [ -e /trace/go ]; do sleep 0.05; done; exit 5")), v1.RestartPolicyNever)
	d.apply(job)
	d.untilNote("job runs")
	d.untilNote("going runs")
	steady, dies := d.container("steady", "main"), d.container("dies", "main")

	// Kill the runtime while it pulls an image and stops a container.
	r.Inject(registry.Fault{PathPart: "/manifests/"})
	d.apply(d.pod("coming", withImage(ref, shell("main", serve("coming")))))
	d.eventually("the pull hangs", func() error {
		if r.HangingCount() == 0 {
			return errors.New("got no hanging request at the registry, want one")
		}
		return nil
	})
	d.remove("going")
	d.untilNote("going TERM")
	if err := d.on.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.ClearFaults()
	d.untilReason("steady", d.on.Socket())

	// While the runtime is down, a container is killed, another one exits, and a manifest is added. podd
	// must handle these changes when the runtime runs again.
	if err := syscall.Kill(dies.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.touch("go")
	d.apply(d.pod("late", shell("main", serve("late"))))
	if err := d.on.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.untilGone("going")
	d.untilApplied("coming")
	d.untilApplied("late")
	d.untilPod("runs again", "dies", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 || !p.Ready {
			return fmt.Errorf("got restarts %d, ready %t; want restarts 1, ready true", n, p.Ready)
		}
		return nil
	})
	d.untilPod("failed", "job", inPhase(v1.PodFailed))
	d.untilApplied("steady")
	if now := d.container("steady", "main"); now != steady {
		t.Errorf("container of pod steady: got %+v, want %+v", now, steady)
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
	d.untilReason("web", d.on.Socket())
	if err := d.on.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	// Now podd starts while the runtime is down but the container of the pod still runs. The container
	// must keep running.
	was := d.container("web", "main")
	d.kill()
	if err := d.on.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.untilReason("web", d.on.Socket())
	if err := d.on.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container of pod web: got %+v, want %+v", now, was)
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
	d.untilReason("web", "network")
	if err := d.on.ConnectNetwork(); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
}

// untilReason waits until the reason that podd shows for a pod contains text, and returns the
// reason.
func (d *daemon) untilReason(pod, text string) string {
	d.t.Helper()
	p := d.untilPod("has the reason "+text, pod, func(p *server.PodView) error {
		if !containsAll(p.Why, []string{text}) {
			return fmt.Errorf("got the reason %q, want %q in it", p.Why, text)
		}
		return nil
	})
	return p.Why
}
