//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/server"
)

// withRestartPolicy sets the restart policy of p and returns p.
func withRestartPolicy(p *v1.Pod, policy v1.RestartPolicy) *v1.Pod {
	p.Spec.RestartPolicy = policy
	return p
}

// failFirst returns a script that fails when it runs for the first time.
func failFirst(name string) string {
	return note(name+" tries") + "if mkdir /trace/" + name + " 2>/dev/null; then exit 1; fi; "
}

func TestInitContainersRunInOrder(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web", shell("main", serve("main")))
	p.Spec.InitContainers = []v1.Container{shell("a", "sleep 0.2; "+note("a")), shell("b", failFirst("b")), shell("c", note("c"))}
	d.apply(p)
	d.untilApplied("web")
	d.untilNoted("a", "b tries", "b tries", "c", "main runs")
	was := d.container("web", "main")
	d.crash()
	d.untilApplied("web")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container main after podd was killed: got %+v, want %+v", now, was)
	}
	d.untilNoted("a", "b tries", "b tries", "c", "main runs")
}

func TestInitContainers_FailedInNeverPod(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := withRestartPolicy(d.pod("job", shell("main", note("main"))), v1.RestartPolicyNever)
	p.Spec.InitContainers = []v1.Container{shell("a", note("a")+"exit 4"), shell("b", note("b"))}
	d.apply(p)
	d.untilPod("failed", "job", inPhase(v1.PodFailed))
	d.untilNoted("a")
	d.untilWoundDown("job")
}

func TestSidecarsStartAndStopInOrder(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	slow := "trap '" + note("main TERM") + "sleep 0.5; " + note("main ends") + "exit 0' TERM; " + note("main runs") + "sleep 3600 & wait"
	p := d.pod("web", shell("main", slow))
	p.Spec.TerminationGracePeriodSeconds = new(int64(60)) // afterwards, the order is not guaranteed
	p.Spec.InitContainers = []v1.Container{
		shell("a", "sleep 0.1"), sidecar("s1", serve("s1")), shell("b", "sleep 0.1"), sidecar("s2", serve("s2")),
	}
	d.apply(p)
	d.untilApplied("web")
	d.eventually("containers s1, s2 and main have noted that they run", func() error {
		if n := len(d.notes()); n != 3 {
			return fmt.Errorf("got notes %q, want 3 notes", d.notes())
		}
		return nil
	})
	var order []*cri.ContainerStatus
	for _, name := range []string{"a", "s1", "b", "s2", "main"} {
		order = append(order, d.containerStatus("web", name, 0))
	}
	if !slices.IsSortedFunc(order, func(a, b *cri.ContainerStatus) int { return cmp.Compare(a.GetStartedAt(), b.GetStartedAt()) }) {
		t.Errorf("order of the start times: got %v, want a, s1, b, s2, main", order)
	}
	d.remove("web")
	d.untilGone("web")
	if got, want := strings.Join(d.notes()[3:], ", "), "main TERM, main ends, s2 TERM, s1 TERM"; got != want {
		t.Errorf("notes during the stop: got %q, want %q", got, want)
	}
}

// untilWoundDown waits until podd reports its phase "rest" for a finished pod. Then podd has nothing
// more to do for the pod, so the test fails if the sandbox is ready, or a volume or a cgroup of the pod
// exists.
func (d *daemon) untilWoundDown(pod string) {
	d.t.Helper()
	p := d.untilPod("is in podd's phase \"rest\"", pod, func(p *server.PodView) error {
		if p.Phase != "rest" {
			return fmt.Errorf("got phase %q (%s: %s), want \"rest\"", p.Phase, p.Rule, p.Why)
		}
		return nil
	})
	now, err := d.inventory(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, s := range now.sandboxes {
		if s.GetMetadata().GetName() == d.podName(pod) && s.GetState() == cri.PodSandboxState_SANDBOX_READY {
			d.t.Errorf("sandbox of the finished pod %s: got state ready, want not ready", pod)
		}
	}
	if left, err := pathsIn(d.root() + "/pods/" + string(p.Pod.UID) + "/volumes"); err != nil || len(left) > 0 {
		d.t.Errorf("volumes of the finished pod %s: got %q, error %v; want none", pod, left, err)
	}
	cgroups, err := d.podCgroups()
	if left := slices.DeleteFunc(cgroups, func(path string) bool { return !strings.Contains(path, string(p.Pod.UID)) }); err != nil || len(left) > 0 {
		d.t.Errorf("cgroups of the finished pod %s: got %q, error %v; want none", pod, left, err)
	}
}

func TestFinishedPodsStayFinished(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	done := withRestartPolicy(d.pod("done", shell("main", "until grep -q 'side runs' /trace/notes; do sleep 0.1; done; "+note("done")+"echo said >/data/x")), v1.RestartPolicyNever)
	done.Spec.Volumes = append(done.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	done.Spec.Containers[0].VolumeMounts = append(done.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: "data", MountPath: "/data"})
	done.Spec.InitContainers = []v1.Container{sidecar("side", serve("side"))}
	failed := withRestartPolicy(d.pod("failed", shell("main", note("failed")+"exit 7")), v1.RestartPolicyNever)
	retried := withRestartPolicy(d.pod("retried", shell("main", failFirst("retried"))), v1.RestartPolicyOnFailure)
	d.apply(done, failed, retried)
	names := []string{"done", "failed", "retried"}
	check := func() {
		t.Helper()
		d.untilPod("succeeded", "done", inPhase(v1.PodSucceeded))
		d.untilPod("failed", "failed", inPhase(v1.PodFailed))
		d.untilPod("succeeded", "retried", inPhase(v1.PodSucceeded))
		for _, name := range names {
			d.untilWoundDown(name)
		}
		d.untilNotedUnordered("done", "failed", "retried tries", "retried tries", "side TERM", "side runs")
	}
	check()
	if p := d.untilPod("was retried once", "retried", inPhase(v1.PodSucceeded)); restarts(p, "main") != 1 {
		t.Errorf("pod retried: got %d restarts, want 1", restarts(p, "main"))
	}
	d.crash()
	check()

	// While podd is not running, all sandboxes and containers are removed from the runtime.
	d.kill()
	d.removeSandboxes(t.Context())
	d.start()
	check()
	if now, err := d.inventory(t.Context()); err != nil || len(now.sandboxes) > 0 {
		t.Errorf("after the runtime has lost the finished pods: got %d new sandboxes, error %v; want none", len(now.sandboxes), err)
	}
	p := d.untilPod("failed", "failed", inPhase(v1.PodFailed))
	if s := p.Pod.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 7 {
		t.Errorf("pod failed after the runtime has lost it: got state %+v, want exit code 7", p.Pod.Status.ContainerStatuses[0].State)
	}

	// After an edit, the new version of a finished pod runs.
	d.apply(withRestartPolicy(d.pod("done", shell("main", note("again"))), v1.RestartPolicyNever))
	d.eventually("the edited pod runs", func() error {
		if !slices.Contains(d.notes(), "again") {
			return fmt.Errorf("got notes %q, want \"again\" among them", d.notes())
		}
		return nil
	})
	d.untilPod("succeeded", "done", inPhase(v1.PodSucceeded))
}
