//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/runtimetest/stack"
	"podd/server"
)

// bare is a pod made by CRI calls, as by somebody else.
type bare struct {
	client    cri.RuntimeServiceClient
	id        string
	container string
}

// makeForeign runs a pod that podd did not make, under a name, with the labels
// of a kubelet's.
func (d *daemon) makeForeign(name string) bare {
	d.t.Helper()
	client := cri.NewRuntimeServiceClient(d.dial())
	labels := map[string]string{
		runtime.LabelPodName: name, runtime.LabelPodNamespace: "default", runtime.LabelPodUID: "foreign-" + name,
	}
	config := &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "foreign-" + name},
		Labels:   labels,
		Linux:    &cri.LinuxPodSandboxConfig{CgroupParent: d.cgroup() + "/foreign-" + name},
	}
	sandbox, err := client.RunPodSandbox(d.t.Context(), &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		d.t.Fatal(err)
	}
	b := bare{client: client, id: sandbox.GetPodSandboxId()}
	made, err := client.CreateContainer(d.t.Context(), &cri.CreateContainerRequest{
		PodSandboxId: b.id, SandboxConfig: config,
		Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: "main"}, Labels: labels,
			Image:   &cri.ImageSpec{Image: stack.BusyboxImage, UserSpecifiedImage: stack.BusyboxImage},
			Command: []string{"sleep", "3600"}, Linux: &cri.LinuxContainerConfig{},
		},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	b.container = made.GetContainerId()
	if _, err := client.StartContainer(d.t.Context(), &cri.StartContainerRequest{ContainerId: b.container}); err != nil {
		d.t.Fatal(err)
	}
	return b
}

// remove removes the pod if it still exists. containerd 1.6 reports an error for a container
// that does not.
func (b bare) remove(t testing.TB) {
	t.Helper()
	_, err := b.client.StopContainer(t.Context(), &cri.StopContainerRequest{ContainerId: b.container})
	if err != nil && status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	_, err = b.client.StopPodSandbox(t.Context(), &cri.StopPodSandboxRequest{PodSandboxId: b.id})
	if err != nil && status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	if _, err := b.client.RemovePodSandbox(t.Context(), &cri.RemovePodSandboxRequest{PodSandboxId: b.id}); err != nil {
		t.Error(err)
	}
}

func (b bare) wantRunning(t testing.TB) {
	t.Helper()
	reply, err := b.client.ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: b.container})
	if err != nil {
		t.Fatal(err)
	}
	if s := reply.GetStatus(); s.GetState() != cri.ContainerState_CONTAINER_RUNNING {
		t.Errorf("somebody else's container is %s, exit code %d", s.GetState(), s.GetExitCode())
	}
}

func TestForeignPodsAreNotTouched(t *testing.T) {
	t.Parallel()
	d := begin(t)
	wanted, other := d.makeForeign(d.full("web")), d.makeForeign(d.full("other"))
	d.apply(d.pod("web", shell("main", serve("web"))), d.pod("more", shell("main", serve("more"))))
	d.untilProblem("web", "--adopt")
	d.untilApplied("more")
	d.crash()
	d.untilProblem("web", "--adopt")
	d.remove("more")
	d.untilGone("more")
	wanted.wantRunning(t)
	other.wantRunning(t)

	// The manifest goes, and comes back; the name becomes free.
	d.remove("web")
	d.untilGone("web")
	wanted.wantRunning(t)
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilProblem("web", "--adopt")
	wanted.remove(t)
	d.untilApplied("web")
	other.wantRunning(t)
	other.remove(t)
}

func TestAdoptEndsTheForeignPodOfTheName(t *testing.T) {
	t.Parallel()
	d := begin(t, "--adopt")
	wanted, other := d.makeForeign(d.full("web")), d.makeForeign(d.full("other"))
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	reply, err := wanted.client.ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: wanted.container})
	if err == nil && reply.GetStatus().GetState() == cri.ContainerState_CONTAINER_RUNNING {
		t.Error("the foreign container of the name runs beside the wanted pod")
	}
	other.wantRunning(t)
	other.remove(t)
	wanted.remove(t)
}

func TestTwoDaemonsOfOneName(t *testing.T) {
	t.Parallel()
	a := begin(t)
	b := newDaemon(t, shared)
	b.host = a.host
	b.start()
	a.apply(a.pod("web", shell("main", serve("a"))))
	a.untilApplied("web")
	was := a.runs("web", "main")
	b.apply(b.pod("web", shell("main", serve("b"))), b.pod("own", shell("main", serve("own"))))
	b.untilApplied("own")
	b.untilProblem("web", "--adopt")
	b.crash()
	a.crash()
	b.untilProblem("web", "--adopt")
	a.untilApplied("web")
	if now := a.runs("web", "main"); now != was {
		t.Errorf("the first one's pod is %+v, was %+v", now, was)
	}
	a.remove("web")
	a.untilGone("web")
	b.untilApplied("web")
}

// TestTwoMakeAPodTogether has a second podd make a pod while the sandbox of the first
// one takes its time: the first one finds both, and starts nothing in its own.
func TestTwoMakeAPodTogether(t *testing.T) {
	t.Parallel()
	a := newDaemon(t, shared)
	p := a.throughProxy()
	b := newDaemon(t, shared)
	b.host = a.host
	makes, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	var begun atomic.Bool
	p.onCall(func(m moment, c call) bool {
		if m == before && c.Method == "RunPodSandbox" && c.Nth == 1 {
			begun.Store(true)
			close(makes)
			<-goOn
		}
		if m == before && begun.Load() && strings.HasPrefix(c.Method, "List") {
			<-goOn // it does not see the second one's
		}
		return false
	})
	a.start()
	b.start()
	a.apply(a.pod("web", shell("main", serve("a"))))
	<-makes
	b.apply(b.pod("web", shell("main", serve("b"))))
	b.untilApplied("web")
	was := b.runs("web", "main")
	release()
	a.untilProblem("web", "--adopt")
	a.eventually("the first one's sandbox is stopped", func() error {
		if !p.made(call{Method: "StopPodSandbox", Nth: 1}) {
			return errors.New("it was not")
		}
		return nil
	})
	a.stays(3, "the first one waits", func(v *server.View) error {
		if f := a.find(v, "web"); f == nil || f.Phase != "wait" {
			return fmt.Errorf("it does not: %+v", f)
		}
		return nil
	})
	if noted := a.journal(); !slices.Equal(noted, []string{""}) {
		t.Errorf("the first one's container noted %q", noted)
	}
	if now := b.runs("web", "main"); now != was {
		t.Errorf("the second one's pod is %+v, was %+v", now, was)
	}
	b.remove("web")
	b.untilGone("web")
	a.untilApplied("web")
}
