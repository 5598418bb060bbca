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

// For a moment after a resize, a runtime may still report the previous resources.
const (
	resizePoll    = 50 * time.Millisecond
	resizeTimeout = 5 * time.Second
)

// resizeContainer gives a running container its size in the desired version, and returns
// when the runtime reports that size. It changes nothing if the memory limit of any
// container of the pod is less than what it uses.
func (e *Runner) resizeContainer(ctx context.Context, s Input, a plan.ResizeContainer) error {
	err := e.checkMemory(ctx, s)
	if err == nil {
		err = e.widenCgroup(s)
	}
	if err == nil {
		c, _, _ := plan.FindContainer(s.Desired.Spec, a.Container)
		err = e.updateResources(ctx, a.ID, render.ContainerResources(*s.Node, s.Desired.Spec, c))
	}
	if err != nil {
		return fmt.Errorf("resizing container %s to %s: %w; the container keeps %s",
			a.Container, s.Desired.Containers[a.Container].Size, err, s.Actual.Containers[a.Container].Size)
	}
	return nil
}

func (e *Runner) updateResources(ctx context.Context, id string, want *cri.LinuxContainerResources) error {
	if err := e.Runtime.UpdateContainerResources(ctx, id, want); err != nil {
		return err
	}
	return e.awaitResources(ctx, id, want)
}

// awaitResources waits until the runtime reports the resources that were requested. It
// returns an error after resizeTimeout.
func (e *Runner) awaitResources(ctx context.Context, id string, want *cri.LinuxContainerResources) error {
	tick := time.NewTicker(resizePoll)
	defer tick.Stop()
	for since := time.Now(); ; {
		has, err := e.Runtime.ContainerResources(ctx, id)
		if err != nil || has == nil || hasResources(has, want) {
			return err
		}
		if time.Since(since) > resizeTimeout {
			return fmt.Errorf("the runtime accepted the new size, but %s later it reports the memory limit %d and the CPU quota %d of %d µs",
				resizeTimeout, has.Memory, has.CPUQuota, has.CPUPeriod)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// hasResources reports whether a container has the requested resources. CPU shares are not
// compared, because on cgroup v2 some runtimes report shares that they computed from the
// weight.
func hasResources(has *runtime.Resources, want *cri.LinuxContainerResources) bool {
	same := func(has, want int64) bool { return want == 0 || has == want }
	return same(has.Memory, want.MemoryLimitInBytes) && same(has.CPUQuota, want.CpuQuota) && same(has.CPUPeriod, want.CpuPeriod)
}

// widenCgroup widens the cgroup of a pod that is being resized, so that both sizes fit: on
// cgroup v1 no container may have more quota than its pod.
func (e *Runner) widenCgroup(s Input) error {
	if !s.ResizePending {
		return nil
	}
	return e.setCgroup(render.PodCgroup(s.Desired, *s.Node).AtLeast(render.PodCgroup(s.Actual, *s.Node)))
}

// setCgroup makes the cgroup of a pod, or sets its limits if it exists.
func (e *Runner) setCgroup(c render.Cgroup) error {
	if e.MakeCgroup == nil {
		return nil
	}
	return e.MakeCgroup(c)
}
