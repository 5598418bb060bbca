package reconcile

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// A runtime may say for a moment that a container has what it had.
const (
	agreeEvery = 50 * time.Millisecond
	agreeLimit = 5 * time.Second
)

// resizeContainer gives a container that runs the size it has in the scene's
// version, and returns when the runtime says so.
func (e *Effects) resizeContainer(ctx context.Context, s scene, a plan.ResizeContainer) error {
	if err := e.makeRoom(s); err != nil {
		return err
	}
	c, _, _ := findContainer(s.desired.Spec, a.Container)
	want := render.ContainerResources(*s.node, s.desired.Spec, c)
	if err := e.update(ctx, s, a.ID, want); err != nil {
		return fmt.Errorf("resizing container %s to %s: %w; it runs on with %s",
			a.Container, s.desired.Containers[a.Container].Size, err, s.actual.Containers[a.Container].Size)
	}
	return nil
}

func (e *Effects) update(ctx context.Context, s scene, id string, want *cri.LinuxContainerResources) error {
	if err := e.spares(ctx, s, id, want.MemoryLimitInBytes); err != nil {
		return err
	}
	if err := e.Runtime.UpdateContainerResources(ctx, id, want); err != nil {
		return err
	}
	return e.agree(ctx, id, want)
}

// spares refuses a memory limit below what is in use. On cgroup v1 the kernel
// does so itself; that of v2 would take it and kill.
func (e *Effects) spares(ctx context.Context, s scene, id string, limit int64) error {
	if !s.node.CgroupV2 || limit == 0 {
		return nil
	}
	used, err := e.Runtime.ContainerMemory(ctx, id)
	if err == nil && used > limit {
		err = fmt.Errorf("it uses %s of memory", resource.NewQuantity(used, resource.BinarySI))
	}
	return err
}

// agree waits until a container has what was asked for.
func (e *Effects) agree(ctx context.Context, id string, want *cri.LinuxContainerResources) error {
	tick := time.NewTicker(agreeEvery)
	defer tick.Stop()
	for since := time.Now(); ; {
		has, err := e.Runtime.ContainerResources(ctx, id)
		if err != nil || has == nil || agrees(has, want) {
			return err
		}
		if time.Since(since) > agreeLimit {
			return fmt.Errorf("the runtime took it, and says %s later that the memory limit is %d and the cpu quota %d of %d µs",
				agreeLimit, has.Memory, has.CPUQuota, has.CPUPeriod)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// agrees leaves out cpu shares: on cgroup v2 some runtimes tell those that they
// made of the weight.
func agrees(has *runtime.Resources, want *cri.LinuxContainerResources) bool {
	same := func(has, want int64) bool { return want == 0 || has == want }
	return same(has.Memory, want.MemoryLimitInBytes) && same(has.CPUQuota, want.CpuQuota) && same(has.CPUPeriod, want.CpuPeriod)
}

// makeRoom widens the cgroup of a pod that is being resized to what both sizes
// need: on cgroup v1 no container may have more quota than its pod.
func (e *Effects) makeRoom(s scene) error {
	if !s.unsized {
		return nil
	}
	return e.limitPod(render.PodCgroup(s.desired, *s.node).AtLeast(render.PodCgroup(s.actual, *s.node)))
}

func (e *Effects) limitPod(c render.Cgroup) error {
	if e.MakeCgroup == nil {
		return nil
	}
	return e.MakeCgroup(c)
}
