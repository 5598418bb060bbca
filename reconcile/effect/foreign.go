package effect

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// stopForeign stops a pod of another node agent in the same way as that agent. It first stops all
// containers at the same time, each with its own grace period, and then the sandbox. A container in
// the state created or unknown is stopped without a grace period, because StopPodSandbox may not
// kill it (see killContainers).
func (e *Runner) stopForeign(ctx context.Context, id string) error {
	containers, err := e.Runtime.SandboxContainers(ctx, id)
	if err != nil {
		return fmt.Errorf("listing the containers of a foreign sandbox: %w", err)
	}
	var stops errgroup.Group
	for _, c := range containers {
		if c.State == runtime.Exited {
			continue
		}
		grace := time.Duration(0)
		if c.State == runtime.Running {
			grace = foreignGrace(&c)
		}
		stops.Go(func() error { return e.Runtime.StopContainer(ctx, c.ID, grace) })
	}
	if err := stops.Wait(); err != nil {
		return fmt.Errorf("stopping a foreign pod: %w", err)
	}
	return e.removeSandbox(ctx, nil, id, false)
}

// foreignGrace returns the grace period that a kubelet recorded in the annotations of a container.
// If there is no such annotation, it returns the default of Kubernetes.
func foreignGrace(c *runtime.Container) time.Duration {
	for _, annotation := range []string{runtime.AnnotationPodDeletionGracePeriod, runtime.AnnotationPodTerminationGracePeriod} {
		if n, err := strconv.ParseInt(c.Annotations[annotation], 10, 32); err == nil && n >= 0 {
			return time.Duration(n) * time.Second
		}
	}
	return v1.DefaultTerminationGracePeriodSeconds * time.Second
}
