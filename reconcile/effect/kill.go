package effect

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"podd/runtime"
)

// killContainers kills the containers of a sandbox that is about to be stopped. It omits containers
// that were observed to have exited.
//
// CRI requires that StopPodSandbox terminate all containers forcibly, but only containerd does.
// CRI-O sends their stop signals to the containers, and waits for the containers and for stops in
// progress until the deadline of the call. The kubelet also stops all containers first.
func (e *Runner) killContainers(ctx context.Context, observed []runtime.Incarnation, sandboxID string) error {
	var kills errgroup.Group
	for i := range observed {
		if observed[i].ID != sandboxID {
			continue
		}
		for _, c := range observed[i].Containers {
			if c.State != runtime.Exited {
				kills.Go(func() error { return e.kill(ctx, &c) })
			}
		}
	}
	return kills.Wait()
}

// removeContainer removes a container. If the container was not observed to have exited, it
// is killed first, for the reason of killContainers.
func (e *Runner) removeContainer(ctx context.Context, observed []runtime.Incarnation, id string) error {
	if _, c := runtime.FindContainer(observed, id); c != nil && c.State != runtime.Exited {
		if err := e.kill(ctx, c); err != nil {
			return err
		}
	}
	return e.Runtime.RemoveContainer(ctx, id)
}

// kill kills a container.
func (e *Runner) kill(ctx context.Context, c *runtime.Container) error {
	if err := e.Runtime.StopContainer(ctx, c.ID, 0); err != nil {
		return fmt.Errorf("killing container %s: %w", c.Name, err)
	}
	return nil
}
