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

// untilEphemeral waits until the function isDone returns true for the state of a pod's ephemeral
// container, and returns the status of the container.
func (d *daemon) untilEphemeral(pod, container string, isDone func(v1.ContainerState) bool) v1.ContainerStatus {
	d.t.Helper()
	var found v1.ContainerStatus
	d.untilPod("shows "+container, pod, func(p *server.PodView) error {
		for _, c := range p.Pod.Status.EphemeralContainerStatuses {
			if c.Name == container && isDone(c.State) {
				found = c
				return nil
			}
		}
		return fmt.Errorf("got ephemeral containers %+v, want container %s in the state for which the test waits", p.Pod.Status.EphemeralContainerStatuses, container)
	})
	return found
}

func isRunning(s v1.ContainerState) bool { return s.Running != nil }

// untilLogs waits until kubectl logs prints the text.
func (k *kubectl) untilLogs(pod, container, want string) {
	k.d.t.Helper()
	k.d.eventually("the log of "+container+" contains "+want, func() error {
		out, stderr, err := k.try("", "logs", pod, "-c", container)
		if err != nil || !strings.Contains(out, want) {
			return fmt.Errorf("got error %w, stdout %s, stderr %s; want %q in stdout", err, out, stderr, want)
		}
		return nil
	})
}

// TestKubectlDebug adds ephemeral containers to a running pod, with and without access to the
// processes of another container. The ephemeral containers must keep running when podd is
// killed, and stop with the pod.
func TestKubectlDebug(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.api = freePort(t)
	d.start()
	pod := d.pod("web", shell("main", "trap 'exit 0' TERM; sleep 12345 & wait"))
	d.apply(pod)
	d.untilApplied("web")
	k, web := d.kubectl(), d.podName("web")
	main := d.container("web", "main")

	// With -it and --target: the user types a line and ends the input with Ctrl-D.
	cmd := k.command(t.Context(), "debug", "-it", web, "--image", stack.BusyboxImage, "--target", "main", "-c", "typed", "--",
		"sh", "-c", "ps; while read line; do echo got $line; done")
	s := startOnTerminal(t, cmd, 80, 24)
	s.typeKeys("hello\r")
	s.waitFor("got hello\r\n")
	s.typeKeys("\x04")
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("kubectl debug: got exit code %d, want 0", code)
	}
	d.untilEphemeral("web", "typed", func(s v1.ContainerState) bool { return s.Terminated != nil && s.Terminated.ExitCode == 0 })
	k.untilLogs(web, "typed", "sleep 12345")

	// Without --target, a container can list only its own processes. The image of the container
	// "missing" does not exist.
	k.run("debug", web, "--image", stack.BusyboxImage, "-c", "alone", "--env", "WORD=hidden", "--", "sh", "-c",
		"trap 'exit 0' TERM; echo sees $(ps | grep -c '[1]2345'); sleep 3600 & wait")
	k.untilLogs(web, "alone", "sees 0")
	k.run("debug", web, "--image", "127.0.0.1:1/none:1", "-c", "missing", "--target", "main", "--env", "WORD=hidden")
	d.untilEphemeral("web", "missing", func(s v1.ContainerState) bool {
		return s.Waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"}, s.Waiting.Reason)
	})
	if got := k.run("exec", web, "-c", "alone", "--", "sh", "-c", "echo $WORD"); got != "hidden\n" {
		t.Errorf("kubectl exec: got %q, want the value %q of $WORD", got, "hidden\n")
	}
	if out, stderr, _ := d.outcome(nil, "why", "web"); strings.Contains(out+stderr, "hidden") {
		t.Errorf("podd why: got stdout %s, stderr %s; want no value of $WORD in either", out, stderr)
	}
	k.wantFailure("debug "+web+" --image x -c main", `main`)
	k.wantOutput("get pod "+web+" -o jsonpath={.status.phase}.{.status.containerStatuses[0].ready}", "Running.true")

	// When podd is killed and starts again, running containers keep running, terminated ones stay
	// terminated, and waiting ones keep waiting.
	alone := d.container("web", "alone")
	d.crash()
	d.untilEphemeral("web", "alone", isRunning)
	d.untilEphemeral("web", "typed", func(s v1.ContainerState) bool { return s.Terminated != nil })
	d.untilEphemeral("web", "missing", func(s v1.ContainerState) bool { return s.Waiting != nil })
	if now := d.container("web", "alone"); now != alone {
		t.Errorf("container alone after podd was killed: got %+v, want %+v", now, alone)
	}
	if now := d.container("web", "main"); now != main {
		t.Errorf("container main after podd was killed: got %+v, want %+v", now, main)
	}
	k.wantOutput("get pod "+web+" -o jsonpath={range.spec.ephemeralContainers[*]}{.name}={.targetContainerName}.{end}", "typed=main.", "alone=.", "missing=main.")
	k.wantOutput("logs "+web+" -c alone", "sees 0")

	// An edit that replaces the pod removes its ephemeral containers. When the pod is removed, its
	// ephemeral container stops too.
	pod.Spec.TerminationGracePeriodSeconds = new(int64(11))
	d.apply(pod)
	d.untilPod("is replaced", "web", func(p *server.PodView) error {
		if len(p.Pod.Spec.EphemeralContainers) > 0 || !p.Ready {
			return fmt.Errorf("got %d ephemeral containers, ready %t; want 0 ephemeral containers, ready true", len(p.Pod.Spec.EphemeralContainers), p.Ready)
		}
		return nil
	})
	if all := d.containers("web", ""); len(all) != 1 {
		t.Errorf("after the edit: got running containers %+v, want only main", all)
	}
	k.run("debug", d.podName("web"), "--image", stack.BusyboxImage, "-c", "last", "--", "sleep", "3600")
	d.untilEphemeral("web", "last", isRunning)
	d.remove("web")
	d.untilGone("web")
}
