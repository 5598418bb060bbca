//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/cmd/podd/e2e/kubelet"
	"podd/runtime"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// startKubelet starts a kubelet with the root directory, the manifests and the runtime of the daemon. The
// daemon must not be running. The kubelet runs until the returned function stop is called.
func (d *daemon) startKubelet(program string) (stop func()) {
	d.t.Helper()
	flags, err := kubelet.Options{Dir: d.dir, Name: d.host, Stack: d.on, ManifestDir: d.manifestDir()}.WriteConfig()
	if err != nil {
		d.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "kubelet.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close() // the kubelet has its own copy of the file descriptor
	cmd := exec.Command(program, flags...)
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := launch(cmd)
	if err != nil {
		d.t.Fatal(err)
	}
	return func() { proc.signal(syscall.SIGTERM) }
}

// countRunning returns the number of running containers of a pod, including those that a kubelet
// has created.
func (d *daemon) countRunning(name string) (n int) {
	d.t.Helper()
	of := &cri.ContainerFilter{
		State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
		LabelSelector: map[string]string{runtime.LabelPodName: d.podName(name)},
	}
	reply, err := cri.NewRuntimeServiceClient(d.dial()).ListContainers(d.t.Context(), &cri.ListContainersRequest{Filter: of})
	if err != nil {
		d.t.Fatal(err)
	}
	return len(reply.GetContainers())
}

// podNotes returns the notes that begin with the name of a pod.
func (d *daemon) podNotes(name string) []string {
	return slices.DeleteFunc(d.notes(), func(l string) bool { return !strings.HasPrefix(l, name+" ") })
}

// untilPodNotes waits until the notes of each named pod are exactly those in the parameter notes, each
// after the name of the pod.
func (d *daemon) untilPodNotes(names []string, notes ...string) {
	d.t.Helper()
	d.within(3*patience, "each pod has noted "+strings.Join(notes, ", "), func() error {
		for _, name := range names {
			want := make([]string, len(notes))
			for i, n := range notes {
				want[i] = name + " " + n
			}
			if got := d.podNotes(name); !slices.Equal(got, want) {
				return fmt.Errorf("notes of pod %s: got %q, want %q", name, got, want)
			}
		}
		return nil
	})
}

// TestTakeover runs a kubelet and podd alternately, with the same manifests and runtime. podd --adopt
// must replace the pods of the kubelet. The kubelet must keep these new pods, and when podd runs again,
// podd must keep them too. A pod from a manifest that podd has run first must be removed with podd down
// before the kubelet can run it. Each pod must be replaced at most once per change, with its grace
// period, and must never run twice at the same time. podd must not change pods without a manifest.
func TestTakeover(t *testing.T) {
	t.Parallel()
	plane, err := tools.EnsureControlPlane(t.Context(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(plane.Programs, "kubelet")
	// The kubelet needs a separate runtime, because it controls every pod of its runtime.
	dir, err := os.MkdirTemp("", "podd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Cleanup(kubelet.SaveHost(dir))
	own, err := stack.Start(context.Background(), stack.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d := newDaemon(t, own, "--adopt")
	host := d.pod("host", shell("main", singletonScript("host")))
	host.Spec.HostNetwork = true
	web := d.pod("web", shell("main", singletonScript("web")))
	web.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80}}
	d.apply(host, web, d.pod("alien", shell("main", singletonScript("alien"))))
	names := []string{"host", "web"}

	stop := d.startKubelet(program)
	t.Cleanup(func() { stop() })
	d.untilPodNotes([]string{"host", "web", "alien"}, "runs")
	stop()
	d.remove("alien")

	d.start()
	d.untilApplied("host")
	d.untilApplied("web")
	d.untilPodNotes(names, "runs", "TERM", "runs")
	d.crash() // a restarted podd keeps the pods running
	d.untilApplied("host")
	d.untilApplied("web")
	d.untilPodNotes(names, "runs", "TERM", "runs")
	d.untilPodNotes([]string{"alien"}, "runs")
	if n := d.countRunning("alien"); n != 1 {
		t.Errorf("pod alien, which has no manifest: got %d running containers, want 1", n)
	}

	// The kubelet keeps the pods that podd has created again, because they have the UIDs of its own pods.
	d.kill()
	stop = d.startKubelet(program)
	// The test does not wait for the note "alien TERM", because a kubelet kills a container of a pod
	// without a manifest if it takes longer than a second to stop.
	d.eventually("the kubelet has stopped pod alien, which has no manifest", func() error {
		if n := d.countRunning("alien"); n > 0 {
			return fmt.Errorf("got %d running containers, want none", n)
		}
		return nil
	})
	d.untilPodNotes(names, "runs", "TERM", "runs")
	stop()
	d.start()
	d.untilApplied("host")
	d.untilApplied("web")
	d.untilPodNotes(names, "runs", "TERM", "runs")

	// A pod that podd has created first has another UID than the kubelet's pod from the same manifest.
	// Therefore the kubelet would start its own pod before it stops podd's. podd down prevents this.
	d.apply(d.pod("later", shell("main", singletonScript("later"))))
	d.untilApplied("later")
	d.untilPodNotes([]string{"later"}, "runs")
	d.verb("down")
	d.kill()
	stop = d.startKubelet(program)
	d.untilPodNotes(names, "runs", "TERM", "runs", "TERM", "runs")
	d.untilPodNotes([]string{"later"}, "runs", "TERM", "runs")
	stop()

	// podd --adopt takes over the pods of the kubelet once more. The stack removes pods that the kubelet
	// does not remove when it stops.
	d.start()
	d.untilApplied("host")
	d.untilApplied("web")
	d.untilPodNotes(names, "runs", "TERM", "runs", "TERM", "runs", "TERM", "runs")
	d.untilPodNotes([]string{"later"}, "runs", "TERM", "runs", "TERM", "runs")
	d.remove("host", "web", "later")
	d.untilGone("host", "web", "later")
	d.kill()
}
