//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack"
	"podd/server"
)

// ephemeralIs waits until an ephemeral container of a pod is in such a state.
func (d *daemon) ephemeralIs(pod, container string, is func(v1.ContainerState) bool) v1.ContainerStatus {
	d.t.Helper()
	var found v1.ContainerStatus
	d.untilPod("shows "+container, pod, func(p *server.PodView) error {
		for _, c := range p.Pod.Status.EphemeralContainerStatuses {
			if c.Name == container && is(c.State) {
				found = c
				return nil
			}
		}
		return fmt.Errorf("its ephemeral containers are %+v", p.Pod.Status.EphemeralContainerStatuses)
	})
	return found
}

func runsNow(s v1.ContainerState) bool { return s.Running != nil }

// untilLogs waits until kubectl logs of a container have some text.
func (k *kubectl) untilLogs(pod, container, want string) {
	k.d.t.Helper()
	k.d.eventually("the log of "+container+" has "+want, func() error {
		out, talk, err := k.try("", "logs", pod, "-c", container)
		if err != nil || !strings.Contains(out, want) {
			return fmt.Errorf("%w %s%s", err, out, talk)
		}
		return nil
	})
}

// TestKubectlDebug: containers are added to a pod that runs, with and without the
// processes of another; they outlive podd, and end with the pod.
func TestKubectlDebug(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.api = freePort(t)
	d.start()
	pod := d.pod("web", shell("main", "trap 'exit 0' TERM; sleep 12345 & wait"))
	d.apply(pod)
	d.untilApplied("web")
	k, web := d.kubectl(), d.full("web")
	main := d.runs("web", "main")

	// -it, with the processes of main: somebody types, and leaves.
	cmd := k.command(t.Context(), "debug", "-it", web, "--image", stack.BusyboxImage, "--target", "main", "-c", "typed", "--",
		"sh", "-c", "ps; while read line; do echo got $line; done")
	s := at(t, cmd, 80, 24)
	s.types("hello\r")
	s.shows("got hello\r\n")
	s.types("\x04")
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("kubectl debug left with %d", code)
	}
	d.ephemeralIs("web", "typed", func(s v1.ContainerState) bool { return s.Terminated != nil && s.Terminated.ExitCode == 0 })
	k.untilLogs(web, "typed", "sleep 12345")

	// Beside it one that sees only itself, and one that cannot be had.
	k.run("debug", web, "--image", stack.BusyboxImage, "-c", "alone", "--env", "WORD=hidden", "--", "sh", "-c",
		"trap 'exit 0' TERM; echo sees $(ps | grep -c '[1]2345'); sleep 3600 & wait")
	k.untilLogs(web, "alone", "sees 0")
	k.run("debug", web, "--image", "127.0.0.1:1/none:1", "-c", "missing", "--target", "main", "--env", "WORD=hidden")
	d.ephemeralIs("web", "missing", func(s v1.ContainerState) bool {
		return s.Waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"}, s.Waiting.Reason)
	})
	if got := k.run("exec", web, "-c", "alone", "--", "sh", "-c", "echo $WORD"); got != "hidden\n" {
		t.Errorf("exec: %q", got)
	}
	if out, talk, _ := d.outcome(nil, "why", "web"); strings.Contains(out+talk, "hidden") {
		t.Errorf("podd why tells a variable: %s%s", out, talk)
	}
	k.refuses("debug "+web+" --image x -c main", `main`)
	k.says("get pod "+web+" -o jsonpath={.status.phase}.{.status.containerStatuses[0].ready}", "Running.true")

	// podd is killed: what runs is the same, what ended ended, what waits waits.
	alone := d.runs("web", "alone")
	d.crash()
	d.ephemeralIs("web", "alone", runsNow)
	d.ephemeralIs("web", "typed", func(s v1.ContainerState) bool { return s.Terminated != nil })
	d.ephemeralIs("web", "missing", func(s v1.ContainerState) bool { return s.Waiting != nil })
	if now := d.runs("web", "alone"); now != alone {
		t.Errorf("alone is now %+v, was %+v", now, alone)
	}
	if now := d.runs("web", "main"); now != main {
		t.Errorf("main is now %+v, was %+v", now, main)
	}
	k.says("get pod "+web+" -o jsonpath={range.spec.ephemeralContainers[*]}{.name}={.targetContainerName}.{end}", "typed=main.", "alone=.", "missing=main.")
	k.says("logs "+web+" -c alone", "sees 0")

	// An edit that replaces the pod drops them, and its removal leaves nothing.
	pod.Spec.TerminationGracePeriodSeconds = new(int64(11))
	d.apply(pod)
	d.untilPod("is replaced", "web", func(p *server.PodView) error {
		if len(p.Pod.Spec.EphemeralContainers) > 0 || !p.Ready {
			return fmt.Errorf("it has %d, ready %v", len(p.Pod.Spec.EphemeralContainers), p.Ready)
		}
		return nil
	})
	if all := d.allRunning("web", ""); len(all) != 1 {
		t.Errorf("there run %+v", all)
	}
	k.run("debug", d.full("web"), "--image", stack.BusyboxImage, "-c", "last", "--", "sleep", "3600")
	d.ephemeralIs("web", "last", runsNow)
	d.remove("web")
	d.untilGone("web")
}
