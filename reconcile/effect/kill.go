package effect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/runtime"
)

// killContainers kills the containers of a sandbox that is about to be stopped. It omits containers
// that were observed to have exited.
//
// CRI requires that StopPodSandbox terminate all containers forcibly, but only containerd does
// this. CRI-O sends each container its stop signal. It then waits until the containers have exited
// and other stops have ended, but no longer than the deadline of StopPodSandbox. Therefore podd
// kills the containers first, as the kubelet does.
func (e *Runner) killContainers(ctx context.Context, observed []runtime.Incarnation, sandboxID string) error {
	var kills errgroup.Group
	for i := range observed {
		if observed[i].ID != sandboxID {
			continue
		}
		for _, c := range observed[i].Containers {
			if c.State != runtime.Exited {
				kills.Go(func() error { return e.kill(ctx, observed[i].UID, &c) })
			}
		}
	}
	return kills.Wait()
}

// removeContainer removes a container. If the container was not observed to have exited,
// removeContainer kills the container first, as killContainers does.
func (e *Runner) removeContainer(ctx context.Context, observed []runtime.Incarnation, id string) error {
	if inc, c := runtime.FindContainer(observed, id); c != nil && c.State != runtime.Exited {
		if err := e.kill(ctx, inc.UID, c); err != nil {
			return err
		}
	}
	return e.Runtime.RemoveContainer(ctx, id)
}

// kill kills a container of the pod with this UID.
func (e *Runner) kill(ctx context.Context, uid types.UID, c *runtime.Container) error {
	if err := e.stop(ctx, uid, c.ID, 0); err != nil {
		return fmt.Errorf("killing container %s: %w", c.Name, err)
	}
	return nil
}

// stop stops the container id of the pod with this UID. If the stop fails, the error contains the
// remedy, and the processes of the pod that SIGKILL cannot terminate now.
func (e *Runner) stop(ctx context.Context, uid types.UID, id string, grace time.Duration) error {
	return e.explainUnkillable(uid, e.Runtime.StopContainer(ctx, id, grace))
}

// explainUnkillable adds the remedy and the processes of the pod that SIGKILL cannot terminate now to err,
// the error of a stop. If there are no such processes, or if err is nil, it returns err itself.
func (e *Runner) explainUnkillable(uid types.UID, err error) error {
	if err == nil || e.UnkillableProcesses == nil {
		return err
	}
	processes := e.UnkillableProcesses(uid)
	if len(processes) == 0 {
		return err
	}
	return fmt.Errorf("%w; SIGKILL has no effect on these processes, because they wait in the kernel for a disk or a file server: %s; "+
		"they exit when the disk or file server responds, and podd retries", err, strings.Join(processes, ", "))
}

// processTimeout limits the time in which killProcesses waits for the exits of processes. Processes that
// use much memory exit late, because the kernel releases the memory first.
const processTimeout = 5 * time.Second

// killProcesses kills the processes of an incarnation without the runtime. warning is for the log.
func (e *Runner) killProcesses(ctx context.Context, observed []runtime.Incarnation, a plan.KillProcesses) (kill result.KilledProcesses, warning string, err error) {
	if e.KillContainers == nil {
		return kill, "", errors.New("podd cannot kill the processes of the pod without the runtime, because cgroupsPerQOS is false; restart the runtime")
	}
	ids := []string{a.SandboxID}
	if inc := runtime.FindSandbox(observed, a.SandboxID); inc != nil {
		for i := range inc.Containers {
			ids = append(ids, inc.Containers[i].ID)
		}
	}
	killCtx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	kill.Found, err = e.KillContainers(killCtx, a.UID, ids, a.WereFound)
	if err := e.explainUnkillable(a.UID, err); err != nil {
		return kill, "", err
	}
	return kill, "the runtime did not stop the evicted pod in time; no process remains in its cgroup; check the runtime", nil
}
