//go:build e2e

package e2e

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/runtimetest/stack"
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
			Image:   &cri.ImageSpec{Image: stack.BusyboxImage},
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

// remove removes it, if nobody has.
func (b bare) remove(t testing.TB) {
	t.Helper()
	_, err := b.client.StopPodSandbox(t.Context(), &cri.StopPodSandboxRequest{PodSandboxId: b.id})
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
