//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/server"
)

// waitingFor returns a check that a container is waiting with this reason.
func waitingFor(container, reason string) func(*server.PodView) error {
	return func(p *server.PodView) error {
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.Name == container && c.State.Waiting != nil && c.State.Waiting.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("got containers %+v, want %s waiting with reason %s", p.Pod.Status.ContainerStatuses, container, reason)
	}
}

// TestCrashBackOff checks the back-off of a crashing container, and that the back-off continues
// after podd was killed.
func TestCrashBackOff(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("db", shell("main", note("try")+"echo attempt of $$ ended; exit 3")))
	// The first restart is immediate. The second must wait for the back-off.
	p := d.untilPod("backs off", "db", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 {
			return fmt.Errorf("got %d restarts, want 1", n)
		}
		return waitingFor("main", "CrashLoopBackOff")(p)
	})
	d.untilNoted("try", "try")
	if state := p.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; state == nil || state.ExitCode != 3 {
		t.Errorf("last termination state: got %+v, want exit code 3", state)
	}
	if out, stderr := d.verb("why", "db"); !strings.Contains(out+stderr, "exit 3") {
		t.Errorf("podd why: got stdout %q, stderr %q; want %q in one of them", out, stderr, "exit 3")
	}
	for _, flag := range []string{"--previous", "--tail=5"} {
		d.eventually("podd logs prints the last line", func() error {
			if out, _ := d.verb("logs", "db", flag); !strings.Contains(out, "ended") {
				return fmt.Errorf("podd logs %s: got %q, want %q in it", flag, out, "ended")
			}
			return nil
		})
	}

	// podd keeps the restart count and the back-off when it is killed. The status of attempt 1 is read
	// now, because CRI-O changes the finish time of a container while the container is removed.
	second := d.containerStatus("db", "main", 1)
	d.crash()
	d.untilPod("is restarted again", "db", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 2 {
			return fmt.Errorf("got %d restarts, want 2", n)
		}
		return waitingFor("main", "CrashLoopBackOff")(p)
	})
	d.untilNoted("try", "try", "try")
	third := d.containerStatus("db", "main", 2)
	if second != nil && third != nil {
		if waited := time.Duration(third.GetStartedAt() - second.GetFinishedAt()); waited < 10*time.Second {
			t.Errorf("second restart: got %s after the exit, want at least 10s", waited)
		}
	}
}

// containerStatus returns the runtime's status of one attempt of a container, or nil if that
// attempt does not exist.
func (d *daemon) containerStatus(pod, container string, attempt uint32) *cri.ContainerStatus {
	d.t.Helper()
	now, err := d.inventory(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range now.containers {
		m := c.GetMetadata()
		if c.GetLabels()[runtime.LabelPodName] != d.podName(pod) || m.GetName() != container || m.GetAttempt() != attempt {
			continue
		}
		reply, err := cri.NewRuntimeServiceClient(d.dial()).ContainerStatus(d.t.Context(), &cri.ContainerStatusRequest{ContainerId: c.GetId()})
		if status.Code(err) == codes.NotFound {
			return nil
		}
		if err != nil {
			d.t.Fatal(err)
		}
		return reply.GetStatus()
	}
	return nil
}

func TestKilledContainerRestarts(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("main")), shell("other", serve("other"))))
	d.untilApplied("web")
	was, other := d.container("web", "main"), d.container("web", "other")
	if err := syscall.Kill(was.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.untilPod("runs again", "web", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 || !p.Ready {
			return fmt.Errorf("got restarts %d, ready %t; want restarts 1, ready true", n, p.Ready)
		}
		return nil
	})
	if now := d.container("web", "main"); now.Sandbox != was.Sandbox || now.Attempt != 1 {
		t.Errorf("killed container: got %+v, want attempt 1 in the sandbox of %+v", now, was)
	}
	if now := d.container("web", "other"); now != other {
		t.Errorf("container that was not killed: got %+v, want %+v", now, other)
	}
}

func TestLostSandboxIsReplaced(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	web := d.pod("web", shell("main", serve("main")))
	if !d.on.HasSandboxProcess() {
		web.Spec.ShareProcessNamespace = new(true)
	}
	d.apply(web)
	d.untilApplied("web")
	was := d.container("web", "main")
	if err := syscall.Kill(d.sandboxPID(was.Sandbox), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.untilPod("runs in a new sandbox", "web", func(p *server.PodView) error {
		if all := d.containers("web", "main"); len(all) != 1 || all[0].Sandbox == was.Sandbox || !p.Ready {
			return fmt.Errorf("got running containers %+v, ready %t; want one container in a new sandbox, ready true", all, p.Ready)
		}
		return nil
	})
	d.eventually("the old sandbox is removed", func() error {
		now, err := d.inventory(t.Context())
		if err == nil && len(now.sandboxes) != 1 {
			err = fmt.Errorf("got %d sandboxes, want 1", len(now.sandboxes))
		}
		return err
	})
}
