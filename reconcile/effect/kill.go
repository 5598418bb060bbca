package effect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

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
	err := e.Runtime.StopContainer(ctx, id, grace)
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
