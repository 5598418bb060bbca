//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// hasTerminationMessage returns a check of the termination message of a pod's only container. The
// check succeeds if the function want returns true for the message.
func hasTerminationMessage(want func(string) bool) func(*server.PodView) error {
	return func(p *server.PodView) error {
		if len(p.Pod.Status.ContainerStatuses) == 0 {
			return fmt.Errorf("got no container status, want one")
		}
		c := p.Pod.Status.ContainerStatuses[0]
		for _, s := range []v1.ContainerState{c.State, c.LastTerminationState} {
			if s.Terminated != nil && want(s.Terminated.Message) {
				return nil
			}
		}
		return fmt.Errorf("got the container status %+v, want the termination message of this test case", c)
	}
}

// TestTerminationMessages checks the termination message in the status of a container that writes it as
// another user, that writes more than 4096 bytes, and whose message is the end of its log.
func TestTerminationMessages(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	own := shell("main", "echo 'no disk' >/tmp/why; exit 3")
	own.TerminationMessagePath = "/tmp/why"
	own.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(1234))}
	huge := shell("main", "rm -f /dev/termination-log; head -c 300000 /dev/zero | tr '\\0' a >/dev/termination-log; echo end >>/dev/termination-log; exit 4")
	log := shell("main", "echo first; echo 'last words'; exit 5")
	log.TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
	for name, c := range map[string]struct {
		container v1.Container
		want      func(string) bool
	}{
		"own":  {own, func(s string) bool { return s == "no disk\n" }},
		"huge": {huge, func(s string) bool { return len(s) == 4096 && strings.HasSuffix(s, "aaaend\n") }},
		"log":  {log, func(s string) bool { return s == "first\nlast words\n" }},
	} {
		d.apply(withRestartPolicy(d.pod(name, c.container), v1.RestartPolicyNever))
		d.untilPod("has a message", name, hasTerminationMessage(c.want))
	}
	if out, _ := d.verb("why", "own"); !strings.Contains(out, `: "no disk"`) {
		t.Errorf("podd why: got\n%s, want %q in it", out, `: "no disk"`)
	}
	d.crash()
	d.untilPod("still has its message", "own", hasTerminationMessage(func(s string) bool { return s == "no disk\n" }))
}
