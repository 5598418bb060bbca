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

// A foreignPod is a pod that a test has created with CRI calls, so that it does not belong to podd.
type foreignPod struct {
	client    cri.RuntimeServiceClient
	id        string
	container string
}

// makeForeign runs a foreign pod with the labels of a kubelet's pod.
func (d *daemon) makeForeign(name string) foreignPod {
	d.t.Helper()
	client := cri.NewRuntimeServiceClient(d.dial())
	config := d.foreignConfig(name)
	sandbox, err := client.RunPodSandbox(d.t.Context(), &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		d.t.Fatal(err)
	}
	b := foreignPod{client: client, id: sandbox.GetPodSandboxId()}
	made, err := client.CreateContainer(d.t.Context(), &cri.CreateContainerRequest{
		PodSandboxId: b.id, SandboxConfig: config,
		Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: "main"}, Labels: config.GetLabels(),
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

// foreignConfig returns the configuration of a foreign sandbox with the labels of a kubelet's pod.
func (d *daemon) foreignConfig(name string) *cri.PodSandboxConfig {
	return &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "foreign-" + name},
		Labels: map[string]string{
			runtime.LabelPodName: name, runtime.LabelPodNamespace: "default", runtime.LabelPodUID: "foreign-" + name,
		},
		Linux: &cri.LinuxPodSandboxConfig{CgroupParent: d.parentCgroup() + "/foreign-" + name},
	}
}

// remove removes the pod if it still exists. containerd 1.6 returns an error for a container
// that does not exist.
func (b foreignPod) remove(t testing.TB) {
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

// wantRunning fails the test unless the container of the pod is running.
func (b foreignPod) wantRunning(t testing.TB) {
	t.Helper()
	reply, err := b.client.ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: b.container})
	if err != nil {
		t.Fatal(err)
	}
	if s := reply.GetStatus(); s.GetState() != cri.ContainerState_CONTAINER_RUNNING {
		t.Errorf("foreign container: got %s, exit code %d, want running", s.GetState(), s.GetExitCode())
	}
}

func TestForeignPods(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	conflicting, other := d.makeForeign(d.podName("web")), d.makeForeign(d.podName("other"))
	d.apply(d.pod("web", shell("main", serve("web"))), d.pod("more", shell("main", serve("more"))))
	d.untilProblem("web", "--adopt")
	d.untilApplied("more")
	d.crash()
	d.untilProblem("web", "--adopt")
	d.remove("more")
	d.untilGone("more")
	conflicting.wantRunning(t)
	other.wantRunning(t)

	// When the manifest is removed and added again, the pod waits again. It starts when the foreign pod
	// with its name is removed.
	d.remove("web")
	d.untilGone("web")
	conflicting.wantRunning(t)
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilProblem("web", "--adopt")
	conflicting.remove(t)
	d.untilApplied("web")
	other.wantRunning(t)
	other.remove(t)
}

func TestForeignPods_Adopt(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--adopt")
	conflicting, other := d.makeForeign(d.podName("web")), d.makeForeign(d.podName("other"))
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	reply, err := conflicting.client.ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: conflicting.container})
	if err == nil && reply.GetStatus().GetState() == cri.ContainerState_CONTAINER_RUNNING {
		t.Errorf("foreign container in a pod with the name of podd's pod: got state %s, want it stopped", reply.GetStatus().GetState())
	}
	other.wantRunning(t)
	other.remove(t)
	conflicting.remove(t)
}

func TestTwoDaemons_SamePodName(t *testing.T) {
	t.Parallel()
	a := startDaemon(t)
	b := newDaemon(t, shared)
	b.host = a.host
	b.start()
	a.apply(a.pod("web", shell("main", serve("a"))))
	a.untilApplied("web")
	was := a.container("web", "main")
	b.apply(b.pod("web", shell("main", serve("b"))), b.pod("own", shell("main", serve("own"))))
	b.untilApplied("own")
	b.untilProblem("web", "--adopt")
	b.crash()
	a.crash()
	b.untilProblem("web", "--adopt")
	a.untilApplied("web")
	if now := a.container("web", "main"); now != was {
		t.Errorf("container of the first podd: got %+v, want %+v", now, was)
	}
	a.remove("web")
	a.untilGone("web")
	b.untilApplied("web")
}

// TestTwoDaemons_SimultaneousCreation lets a second podd create a pod while the runtime creates
// the sandbox of the first podd. The first podd finds both sandboxes and must not start a
// container in its own sandbox.
func TestTwoDaemons_SimultaneousCreation(t *testing.T) {
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
			<-goOn // so that the first podd does not observe the sandbox of the second podd
		}
		return false
	})
	a.start()
	b.start()
	a.apply(a.pod("web", shell("main", serve("a"))))
	<-makes
	b.apply(b.pod("web", shell("main", serve("b"))))
	b.untilApplied("web")
	was := b.container("web", "main")
	release()
	a.untilProblem("web", "--adopt")
	a.eventually("the sandbox of the first podd is stopped", func() error {
		if !p.hasCalled(call{Method: "StopPodSandbox", Nth: 1}) {
			return errors.New("got no call of StopPodSandbox, want one")
		}
		return nil
	})
	a.consistently(3, "the first podd waits", func(v *server.View) error {
		if f := a.find(v, "web"); f == nil || f.Phase != "wait" {
			return fmt.Errorf("pod web of the first podd: got %+v, want podd's phase \"wait\"", f)
		}
		return nil
	})
	if noted := a.notes(); !slices.Equal(noted, []string{""}) {
		t.Errorf("notes of the first podd's containers: got %q, want none", noted)
	}
	if now := b.container("web", "main"); now != was {
		t.Errorf("container of the second podd: got %+v, want %+v", now, was)
	}
	b.remove("web")
	b.untilGone("web")
	a.untilApplied("web")
}
