//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// TestContainerRestartRules checks that a container with restartPolicy Never is restarted only
// after the exit code in its restart rule.
func TestContainerRestartRules(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	in42 := func(c v1.Container) v1.Container {
		never := v1.ContainerRestartPolicyNever
		c.RestartPolicy = &never
		c.RestartPolicyRules = []v1.ContainerRestartRule{{
			Action:    v1.ContainerRestartRuleActionRestart,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		}}
		return c
	}
	first := func(name string) string {
		return note(name) + "if mkdir /trace/" + name + " 2>/dev/null; then exit 42; fi; "
	}
	p := withRestartPolicy(d.pod("job", in42(shell("main", first("main")+"while ! [ -e /trace/go ]; do sleep 0.05; done; exit 7")), shell("other", "exit 0")), v1.RestartPolicyNever)
	p.Spec.InitContainers = []v1.Container{in42(shell("init", first("init")))}
	d.apply(p)
	d.untilNoted("init", "init", "main", "main")
	d.untilPod("runs its main container for the second time", "job", func(p *server.PodView) error {
		for _, c := range p.Pod.Status.ContainerStatuses {
			if end := c.LastTerminationState.Terminated; c.Name == "main" && (c.State.Running == nil || end == nil || end.ExitCode != 42) {
				return fmt.Errorf("container main: got state %+v, last state %+v; want a running container whose last exit code is 42", c.State, c.LastTerminationState)
			}
		}
		if n := restarts(p, "main"); n != 1 {
			return fmt.Errorf("container main: got %d restarts, want 1", n)
		}
		return inPhase(v1.PodRunning)(p)
	})
	// After its restart, podd must still have the information that the container "other" has finished and
	// the container "main" has not.
	d.crash()
	d.untilPod("is running", "job", inPhase(v1.PodRunning))
	d.untilNoted("init", "init", "main", "main")
	if err := os.WriteFile(filepath.Join(d.traceDir(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d.untilPod("has failed", "job", inPhase(v1.PodFailed))
	d.untilWoundDown("job")
	d.untilNoted("init", "init", "main", "main")
}

// TestRestartAllContainers checks a restart rule with the action RestartAllContainers. All containers of
// the pod must be restarted in the same sandbox, beginning with the first init container. A container
// that had completed must run again, too.
func TestRestartAllContainers(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	never := v1.ContainerRestartPolicyNever
	worker := shell("worker", "until [ -e /trace/fail ]; do sleep 0.05; done; rm /trace/fail; exit 42")
	worker.RestartPolicy = &never
	worker.RestartPolicyRules = []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	once := shell("once", "echo once >>/trace/runs")
	once.RestartPolicy = &never
	p := d.pod("job", worker, once, shell("peer", "trap '' TERM; echo peer >>/trace/runs; while :; do sleep 0.1; done"))
	init := shell("init", "echo init >>/trace/runs")
	init.VolumeMounts = p.Spec.Containers[0].VolumeMounts
	p.Spec.InitContainers = []v1.Container{init}
	p.Spec.RestartPolicy = v1.RestartPolicyOnFailure
	d.apply(p)
	untilRun := func(times int) *server.PodView {
		t.Helper()
		d.eventually(fmt.Sprintf("init, once and peer have run %d times", times), func() error {
			text, err := os.ReadFile(filepath.Join(d.traceDir(), "runs"))
			if got := strings.Fields(string(text)); err != nil || len(got) != 3*times || got[3*times-3] != "init" {
				return fmt.Errorf("got runs %q, error %v; want init, once and peer, each %d times", got, err, times)
			}
			return nil
		})
		return d.untilPod("runs", "job", func(p *server.PodView) error {
			for _, name := range []string{"init", "worker", "once", "peer"} {
				if got := restarts(p, name); got != times-1 {
					return fmt.Errorf("container %s: got %d restarts, want %d", name, got, times-1)
				}
			}
			for _, c := range p.Pod.Status.ContainerStatuses {
				if c.Name != "once" && c.State.Running == nil {
					return fmt.Errorf("container %s: got the state %+v, want running", c.Name, c.State)
				}
			}
			return nil
		})
	}
	before := untilRun(1)
	d.touch("fail")
	after := untilRun(2)
	if was, is := before.Pod.Status.PodIP, after.Pod.Status.PodIP; was != is {
		t.Errorf("pod IP after the restart of all containers: got %s, want %s, because the sandbox is the same", is, was)
	}
	if got := after.Pod.Status.Phase; got != v1.PodRunning {
		t.Errorf("phase of the pod after the restart of all containers: got %s, want Running", got)
	}
}
