//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/device/plugin/plugintest"
	"podd/runtime"
)

const (
	fancy  = "example.com/fancy"
	dongle = "example.com/dongle"
)

// requesting returns a container that requests one unit of an extended resource.
func requesting(name v1.ResourceName) v1.Container {
	c := sleepingContainer("main")
	c.Resources.Limits = v1.ResourceList{name: resource.MustParse("1")}
	return c
}

// untilDevices waits until the Node has the given capacity and allocatable quantity of the resource
// fancy.
func (a *agent) untilDevices(capacity, allocatable int64) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("the Node has %d devices, of which %d are allocatable", capacity, allocatable), func() error {
		n, err := plane.node(a.node)
		if err != nil {
			return err
		}
		all, exists := n.Status.Capacity[fancy]
		if healthy := n.Status.Allocatable[fancy]; !exists || all.Value() != capacity || healthy.Value() != allocatable {
			return fmt.Errorf("got capacity %v and allocatable %v", n.Status.Capacity, n.Status.Allocatable)
		}
		return nil
	})
}

// TestDevicePlugin_Restart checks the devices in the Node after podd was restarted and the device plugin
// has not registered again. The running pod must keep its device, and a new pod must fail as with a
// kubelet. Resources that no device plugin serves must not change.
func TestDevicePlugin_Restart(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "n23").start()
	a.untilReady()
	p := &plugintest.Plugin{Dir: filepath.Join(a.dir, "root", "device-plugins"), Resource: fancy}
	p.SetDevices("a", "b")
	a.eventually("device plugins can register", func() error { _, err := os.Stat(filepath.Join(p.Dir, "kubelet.sock")); return err })
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	a.untilDevices(2, 2)
	patch := map[string]any{"status": map[string]any{"capacity": map[string]any{dongle: "1"}}}
	if err := plane.do(http.MethodPatch, "/api/v1/nodes/"+a.node+"/status", patch, nil); err != nil {
		t.Fatal(err)
	}
	createBoundPod(t, a.node, "n23-user", nil, requesting(fancy))
	createBoundPod(t, a.node, "n23-dongle", nil, requesting(dongle))
	isRunning := func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning && isPodReady(p) }
	a.untilStatus("n23-dongle", "runs", isRunning)
	before := containerIDs(a.untilStatus("n23-user", "runs", isRunning))["main"]

	p.Stop()
	a.untilDevices(2, 0)
	a.kill()
	a.start()
	a.untilDevices(0, 0)
	createBoundPod(t, a.node, "n23-late", nil, requesting(fancy))
	a.untilStatus("n23-late", "fails", func(p *v1.Pod) bool {
		return p.Status.Phase == v1.PodFailed && p.Status.Reason == "UnexpectedAdmissionError" && strings.Contains(p.Status.Message, "no healthy devices present")
	})
	if got := a.untilStatus("n23-user", "runs", isRunning); containerIDs(got)["main"] != before {
		t.Errorf("container of the running pod: got %s, want %s as before", containerIDs(got)["main"], before)
	}
	a.untilStatus("n23-dongle", "runs", isRunning)
	n, err := plane.node(a.node)
	if q := n.Status.Allocatable[dongle]; err != nil || q.Value() != 1 {
		t.Error(errors.Join(err, fmt.Errorf("allocatable: got %v, want 1 of %s", n.Status.Allocatable, dongle)))
	}

	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	a.untilDevices(2, 2)
	createBoundPod(t, a.node, "n23-again", nil, requesting(fancy))
	a.untilStatus("n23-again", "runs", isRunning)
}

// TestDevicePlugin_LostSandbox checks two pods whose sandboxes stopped while podd did not run, as after a
// reboot. One of them restarts nothing, and the runtime does not list its sandbox any more. If the device
// plugin does not register, both pods must fail as with a kubelet: with the reason of the rejection.
func TestDevicePlugin_LostSandbox(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "n24").start()
	a.untilReady()
	p := &plugintest.Plugin{Dir: filepath.Join(a.dir, "root", "device-plugins"), Resource: fancy}
	p.SetDevices("a", "b")
	a.eventually("device plugins can register", func() error { _, err := os.Stat(filepath.Join(p.Dir, "kubelet.sock")); return err })
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	a.untilDevices(2, 2)
	createBoundPod(t, a.node, "n24-removed", func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever }, requesting(fancy))
	createBoundPod(t, a.node, "n24-stopped", nil, requesting(fancy))
	for _, pod := range []string{"n24-removed", "n24-stopped"} {
		a.untilStatus(pod, "runs", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning && isPodReady(p) })
	}
	a.kill()
	p.Stop()
	a.loseSandbox("n24-removed", false)
	a.loseSandbox("n24-stopped", true)
	a.start()
	for _, pod := range []string{"n24-removed", "n24-stopped"} {
		a.untilStatus(pod, "fails because no device plugin is registered", func(p *v1.Pod) bool {
			if p.Status.Phase == v1.PodFailed && p.Status.Reason == "" {
				t.Fatalf("got status %+v, want a reason", p.Status)
			}
			return p.Status.Phase == v1.PodFailed && p.Status.Reason == "UnexpectedAdmissionError" && strings.Contains(p.Status.Message, "no healthy devices present")
		})
	}
}

// loseSandbox stops the sandbox of a pod. If isListed is false, it also removes the sandbox from the
// runtime.
func (a *agent) loseSandbox(pod string, isListed bool) {
	a.t.Helper()
	conn, err := grpc.NewClient(runtimeStack.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		a.t.Fatal(err)
	}
	defer conn.Close()
	client := cri.NewRuntimeServiceClient(conn)
	reply, err := client.ListPodSandbox(a.t.Context(), &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: map[string]string{runtime.LabelPodName: pod}}})
	if err != nil || len(reply.GetItems()) != 1 {
		a.t.Fatalf("sandboxes of pod %s: got %v, error %v, want one", pod, reply.GetItems(), err)
	}
	id := reply.GetItems()[0].GetId()
	if _, err := client.StopPodSandbox(a.t.Context(), &cri.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		a.t.Fatal(err)
	}
	if isListed {
		return
	}
	if _, err := client.RemovePodSandbox(a.t.Context(), &cri.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
		a.t.Fatal(err)
	}
}
