//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/server"
)

// TestExitCodeIsUnknown checks that podd reports no final pod phase before the runtime has returned the
// exit code of the container. In the test cases, the runtime returns it late or first returns errors.
// In some cases podd is started after the container has exited.
func TestExitCodeIsUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		restart bool // podd is killed while the container runs, and started after the container has exited
		fails   bool // whether ContainerStatus fails at first; otherwise its first call hangs for longer than podd's timeout
		code    int
		want    v1.PodPhase
	}{
		"late":                  {false, false, 0, v1.PodSucceeded},
		"late, podd restarted":  {true, false, 0, v1.PodSucceeded},
		"fails, podd restarted": {true, true, 3, v1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t, shared)
			p := d.throughProxy()
			d.start()
			d.apply(withRestartPolicy(d.pod("job", shell("main", fmt.Sprintf("%suntil [ -e /trace/go ]; do sleep 0.1; done; exit %d", note("runs"), c.code))), v1.RestartPolicyNever))
			d.untilApplied("job")
			d.untilNoted("runs")
			id := d.containerStatus("job", "main", 0).GetId()
			report := make(chan struct{})
			returnExitCode := func() {
				select {
				case <-report:
				default:
					close(report)
				}
			}
			t.Cleanup(returnExitCode) // otherwise the proxy could not stop because of a hanging call
			p.onCall(func(at moment, call call) bool {
				if at != before || call.Method != "ContainerStatus" {
					return false
				}
				var q cri.ContainerStatusRequest
				if err := call.read(&q); err != nil || q.GetContainerId() != id {
					return false
				}
				select {
				case <-report:
					return false
				default:
				}
				if !c.fails {
					<-report
				}
				return c.fails
			})
			if c.restart {
				d.kill()
			}
			if err := os.WriteFile(d.traceDir()+"/go", nil, 0o644); err != nil {
				t.Fatal(err)
			}
			d.eventually("the container has exited", func() error {
				now, err := d.inventory(t.Context())
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(now.containers, func(c *cri.Container) bool {
					return c.GetId() == id && c.GetState() == cri.ContainerState_CONTAINER_EXITED
				}) {
					return fmt.Errorf("got the containers %+v, want %s exited", now.containers, id)
				}
				return nil
			})
			if c.restart {
				d.start()
			}
			d.untilPod("waits for its exit code", "job", func(p *server.PodView) error {
				if end := p.Pod.Status.Phase; end == v1.PodFailed || end == v1.PodSucceeded {
					t.Fatalf("before the runtime returned the exit code: got phase %s, want no final phase", end)
				}
				if len(p.Decisions) != 1 || p.Decisions[0].Rule != "ExitCodeUnknown" || !p.Decisions[0].NeedsUser {
					return fmt.Errorf("got rule %s with steps %+v, want one step with the rule ExitCodeUnknown that is a problem for the user", p.Rule, p.Decisions)
				}
				return nil
			})
			returnExitCode()
			returned := time.Now()
			d.untilPod("has phase "+string(c.want), "job", inPhase(c.want))
			t.Logf("time from the exit code of the runtime to the final phase in podd: %s", time.Since(returned).Round(time.Millisecond))
			d.untilWoundDown("job")
		})
	}
}
