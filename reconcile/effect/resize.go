package effect

import (
	"context"
	"fmt"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// After a resize, a runtime may report the previous resources for a short time. Therefore
// awaitResources queries the resources every resizePollInterval for up to resizeTimeout.
const (
	resizePollInterval = 50 * time.Millisecond
	resizeTimeout      = 5 * time.Second
)

// resizeContainer changes the resources of a running container to its size in the desired version,
// and returns when the runtime reports the new resources. If a container of the pod uses more
// memory than its new limit, resizeContainer changes nothing and returns an error.
func (e *Runner) resizeContainer(ctx context.Context, s Input, a plan.ResizeContainer) error {
	err := e.checkMemory(ctx, s)
	if inc, _ := runtime.FindContainer(s.Observed, a.ID); err == nil && inc != nil {
		err = e.raiseCgroupLimits(ctx, s, inc.ID)
	}
	if err == nil {
		c, _, _ := plan.FindContainer(s.Desired.Object, a.Container)
		err = e.updateResources(ctx, a.ID, render.ContainerResources(*s.Node, s.Desired.Object, c))
	}
	if err != nil {
		return fmt.Errorf("resizing container %s to %s: %w; the container keeps %s",
			a.Container, s.Desired.ContainerHashes[a.Container].Resources, err, s.Actual.ContainerHashes[a.Container].Resources)
	}
	return nil
}

// updateResources sets the resources of a container, and returns when the runtime reports
// them.
func (e *Runner) updateResources(ctx context.Context, id string, requested *cri.LinuxContainerResources) error {
	if err := e.Runtime.UpdateContainerResources(ctx, id, requested); err != nil {
		return err
	}
	return e.awaitResources(ctx, id, requested)
}

// awaitResources waits until the runtime reports the requested resources. It returns an
// error after resizeTimeout. It does not wait for a runtime that does not report resources.
func (e *Runner) awaitResources(ctx context.Context, id string, requested *cri.LinuxContainerResources) error {
	ticker := time.NewTicker(resizePollInterval)
	defer ticker.Stop()
	for start := time.Now(); ; {
		reported, err := e.Runtime.ContainerResources(ctx, id)
		if err != nil || reported == nil || matchesRequest(reported, requested) {
			return err
		}
		if time.Since(start) > resizeTimeout {
			return fmt.Errorf("the runtime accepted the new size, but %s later it reports the memory limit %d and the CPU quota %d µs per %d µs",
				resizeTimeout, reported.MemoryLimitBytes, reported.CPUQuota, reported.CPUPeriod)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// matchesRequest reports whether a container has the requested resources. A requested value of 0
// does not change the resource, so it matches any value. CPU shares are not compared, because on
// cgroup v2 some runtimes calculate the reported shares from the weight.
func matchesRequest(reported *runtime.Resources, requested *cri.LinuxContainerResources) bool {
	matches := func(reported, requested int64) bool { return requested == 0 || reported == requested }
	return matches(reported.MemoryLimitBytes, requested.MemoryLimitInBytes) && matches(reported.CPUQuota, requested.CpuQuota) && matches(reported.CPUPeriod, requested.CpuPeriod)
}
