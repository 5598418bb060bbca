//go:build e2e && kubelet

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

// kubelet runs one on the root, the manifests and the runtime of a podd that does
// not run, until stop is called.
func (d *daemon) kubelet(program string) (stop func()) {
	d.t.Helper()
	flags, err := kubelet.Options{Dir: d.dir, Name: d.host, Stack: d.on, Manifests: d.manifests()}.Flags()
	if err != nil {
		d.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "kubelet.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close() // the kubelet has its own
	cmd := exec.Command(program, flags...)
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := launch(cmd)
	if err != nil {
		d.t.Fatal(err)
	}
	return func() { proc.signal(syscall.SIGTERM) }
}

// alone is a script that notes when it is not the only one of its name, and takes a
// second to end.
func alone(name string) string {
	lock := "/trace/" + name + ".lock"
	return "mkdir " + lock + " || " + note(name+" runs twice") +
		"trap 'sleep 1; rmdir " + lock + "; " + note(name+" TERM") + "exit 0' TERM; " + note(name+" runs") + "sleep 3600 & wait"
}

// running counts a pod's containers that run, whoever made them.
func (d *daemon) running(name string) (n int) {
	d.t.Helper()
	of := &cri.ContainerFilter{
		State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
		LabelSelector: map[string]string{runtime.LabelPodName: d.full(name)},
	}
	reply, err := cri.NewRuntimeServiceClient(d.dial()).ListContainers(d.t.Context(), &cri.ListContainersRequest{Filter: of})
	if err != nil {
		d.t.Fatal(err)
	}
	return len(reply.GetContainers())
}

// took is what the pods of a name noted.
func (d *daemon) took(name string) []string {
	return slices.DeleteFunc(d.journal(), func(l string) bool { return !strings.HasPrefix(l, name+" ") })
}

// untilTook waits until each of these pods noted just so.
func (d *daemon) untilTook(names []string, notes ...string) {
	d.t.Helper()
	d.within(3*patience, "each pod has noted "+strings.Join(notes, ", "), func() error {
		for _, name := range names {
			want := make([]string, len(notes))
			for i, n := range notes {
				want[i] = name + " " + n
			}
			if got := d.took(name); !slices.Equal(got, want) {
				return fmt.Errorf("got %q", got)
			}
		}
		return nil
	})
}

// TestTakeover: podd with --adopt ends what a kubelet made and runs it anew; the
// kubelet goes on with that, and so does podd again. After podd down the kubelet runs
// also what podd had first. Each pod is replaced once at most, with its grace, and
// never runs twice. What no manifest wants is left to the kubelet.
func TestTakeover(t *testing.T) {
	t.Parallel()
	plane, err := tools.EnsureControlPlane(t.Context(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(plane.Programs, "kubelet")
	// A kubelet takes every pod of a runtime for its own.
	dir, err := os.MkdirTemp("", "podd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Cleanup(kubelet.Remember(dir))
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
	host := d.pod("host", shell("main", alone("host")))
	host.Spec.HostNetwork = true
	web := d.pod("web", shell("main", alone("web")))
	web.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80}}
	d.apply(host, web, d.pod("alien", shell("main", alone("alien"))))
	names := []string{"host", "web"}

	stop := d.kubelet(program)
	t.Cleanup(func() { stop() })
	d.untilTook([]string{"host", "web", "alien"}, "runs")
	stop()
	d.remove("alien")

	d.start()
	d.untilApplied("host")
	d.untilApplied("web")
	d.untilTook(names, "runs", "TERM", "runs")
	d.crash() // it knows its own, and that nothing is left to take over
	d.untilApplied("host")
	d.untilApplied("web")
	d.untilTook(names, "runs", "TERM", "runs")
	d.untilTook([]string{"alien"}, "runs")
	if n := d.running("alien"); n != 1 {
		t.Errorf("%d containers run of a pod that is none of podd's", n)
	}

	// The kubelet knows what it ran before, though podd made it anew.
	d.kill()
	stop = d.kubelet(program)
	// Of what it does not want a kubelet kills what takes longer than a second to end.
	d.eventually("the kubelet has ended what no manifest wants", func() error {
		if n := d.running("alien"); n > 0 {
			return fmt.Errorf("%d containers run", n)
		}
		return nil
	})
	d.untilTook(names, "runs", "TERM", "runs")
	stop()
	d.start()
	d.untilApplied("host")
	d.untilApplied("web")
	d.untilTook(names, "runs", "TERM", "runs")

	// What podd ran first has another UID for the kubelet, which would start its own
	// beside podd's before it ends those.
	d.apply(d.pod("later", shell("main", alone("later"))))
	d.untilApplied("later")
	d.untilTook([]string{"later"}, "runs")
	d.verb("down")
	d.kill()
	stop = d.kubelet(program)
	d.untilTook(names, "runs", "TERM", "runs", "TERM", "runs")
	d.untilTook([]string{"later"}, "runs", "TERM", "runs")
	stop()

	// And the same once more. What is left is the kubelet's, and goes with the stack.
	d.start()
	d.untilApplied("host")
	d.untilApplied("web")
	d.untilTook(names, "runs", "TERM", "runs", "TERM", "runs", "TERM", "runs")
	d.untilTook([]string{"later"}, "runs", "TERM", "runs", "TERM", "runs")
	d.remove("host", "web", "later")
	d.untilGone("host", "web", "later")
	d.kill()
}
