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

func waitingFor(container, reason string) func(*server.PodView) error {
	return func(p *server.PodView) error {
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.Name == container && c.State.Waiting != nil && c.State.Waiting.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("its containers are %+v", p.Pod.Status.ContainerStatuses)
	}
}

func TestCrashBackOff(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("db", shell("main", note("try")+"echo attempt of $$ ended; exit 3")))
	// The first restart is immediate, the second has to wait.
	p := d.untilPod("backs off", "db", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 {
			return fmt.Errorf("%d restarts", n)
		}
		return waitingFor("main", "CrashLoopBackOff")(p)
	})
	d.untilNoted("try", "try")
	if state := p.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; state == nil || state.ExitCode != 3 {
		t.Errorf("the last state is %+v, want exit code 3", state)
	}
	if out, talk := d.verb("why", "db"); !strings.Contains(out+talk, "exit 3") {
		t.Errorf("podd why says %q and %q, want the exit code", out, talk)
	}
	for _, flag := range []string{"--previous", "--tail=5"} {
		d.eventually("podd logs prints the end", func() error {
			if out, _ := d.verb("logs", "db", flag); !strings.Contains(out, "ended") {
				return fmt.Errorf("podd logs %s prints %q", flag, out)
			}
			return nil
		})
	}

	// Neither the count nor the wait ends with podd. CRI-O changes the end of a
	// container while it is removed.
	second := d.record("db", "main", 1)
	d.crash()
	d.untilPod("was tried again", "db", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 2 {
			return fmt.Errorf("%d restarts", n)
		}
		return waitingFor("main", "CrashLoopBackOff")(p)
	})
	d.untilNoted("try", "try", "try")
	third := d.record("db", "main", 2)
	if second != nil && third != nil {
		if waited := time.Duration(third.GetStartedAt() - second.GetFinishedAt()); waited < 10*time.Second {
			t.Errorf("the second restart came after %s, want 10s", waited)
		}
	}
}

// record is the runtime's status of one attempt of a container; nil when it
// has none.
func (d *daemon) record(pod, container string, attempt uint32) *cri.ContainerStatus {
	d.t.Helper()
	now, err := d.look(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range now.containers {
		m := c.GetMetadata()
		if c.GetLabels()[runtime.LabelPodName] != d.full(pod) || m.GetName() != container || m.GetAttempt() != attempt {
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

func TestKilledContainerRunsAgain(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("web", shell("main", serve("main")), shell("other", serve("other"))))
	d.untilApplied("web")
	was, other := d.runs("web", "main"), d.runs("web", "other")
	if err := syscall.Kill(was.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.untilPod("runs again", "web", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 || !p.Ready {
			return fmt.Errorf("%d restarts, ready %v", n, p.Ready)
		}
		return nil
	})
	if now := d.runs("web", "main"); now.Sandbox != was.Sandbox || now.Attempt != 1 {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
	if now := d.runs("web", "other"); now != other {
		t.Errorf("the other container is now %+v, was %+v", now, other)
	}
}

func TestLostSandboxIsReplaced(t *testing.T) {
	t.Parallel()
	d := begin(t)
	web := d.pod("web", shell("main", serve("main")))
	if !d.on.HasSandboxProcess() {
		web.Spec.ShareProcessNamespace = new(true)
	}
	d.apply(web)
	d.untilApplied("web")
	was := d.runs("web", "main")
	if err := syscall.Kill(d.sandboxPID(was.Sandbox), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.untilPod("runs in a new sandbox", "web", func(p *server.PodView) error {
		if all := d.allRunning("web", "main"); len(all) != 1 || all[0].Sandbox == was.Sandbox || !p.Ready {
			return fmt.Errorf("%+v runs", all)
		}
		return nil
	})
	d.eventually("the old one is removed", func() error {
		now, err := d.look(t.Context())
		if err == nil && len(now.sandboxes) != 1 {
			err = fmt.Errorf("%d sandboxes", len(now.sandboxes))
		}
		return err
	})
}
