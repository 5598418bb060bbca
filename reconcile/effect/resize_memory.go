package effect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// checkMemory returns an error if the containers use more memory now than the limits of the desired
// version allow. It measures the usage only if a limit decreases.
func (e *Runner) checkMemory(ctx context.Context, s Input) error {
	pod := plan.MemoryLimitChange{Current: render.PodCgroup(s.Actual, *s.Node).Memory, Desired: render.PodCgroup(s.Desired, *s.Node).Memory}
	limits := append([]plan.MemoryLimitChange{pod}, containerMemoryLimits(s.Actual, s.Desired)...)
	if !slices.ContainsFunc(limits, plan.MemoryLimitChange.Decreases) {
		return nil
	}
	usage, err := e.measureContainerMemory(ctx, s)
	if err != nil {
		return err
	}
	for i := range limits {
		limits[i].Used = usage[limits[i].Container]
	}
	if limits[0].Used, err = e.measurePodMemory(s, usage); err != nil {
		return err
	}
	return plan.CheckMemory(limits)
}

// checkPodMemory returns an error if the pod uses more memory now than the limit of cgroup, its desired
// limits, allows.
func (e *Runner) checkPodMemory(cgroup render.Cgroup) error {
	if e.MeasureCgroupMemory == nil {
		return nil
	}
	usage, limit, err := e.MeasureCgroupMemory(cgroup)
	if err != nil {
		return err
	}
	return plan.CheckMemory([]plan.MemoryLimitChange{{Current: limit, Desired: cgroup.Memory, Used: usage}})
}

// containerMemoryLimits returns the actual and the desired memory limits of the containers that
// are resized without a restart. A container that is restarted frees its memory, so its
// limit is not checked.
func containerMemoryLimits(actual, desired *manifest.Pod) []plan.MemoryLimitChange {
	var changes []plan.MemoryLimitChange
	for _, list := range [][]v1.Container{desired.Object.Spec.InitContainers, desired.Object.Spec.Containers} {
		for i := range list {
			c := &list[i]
			oldContainer, _, _ := plan.FindContainer(actual.Object, c.Name)
			if oldContainer == nil || manifest.RestartsToResize(c, actual.ContainerHashes[c.Name].Resources, desired.ContainerHashes[c.Name].Resources) {
				continue
			}
			changes = append(changes, plan.MemoryLimitChange{
				Container: c.Name, Current: oldContainer.Resources.Limits.Memory().Value(), Desired: c.Resources.Limits.Memory().Value(),
			})
		}
	}
	return changes
}

// measureContainerMemory returns the memory usage in bytes of each running container of the desired
// version. A container that has just exited uses no memory.
func (e *Runner) measureContainerMemory(ctx context.Context, s Input) (map[string]int64, error) {
	usage := map[string]int64{}
	for i := range s.Observed {
		if !plan.IsCreatedFrom(&s.Observed[i], s.Desired) {
			continue
		}
		for _, c := range s.Observed[i].Containers {
			if c.State != runtime.Running {
				continue
			}
			bytes, err := e.Runtime.ContainerMemory(ctx, c.ID)
			if err != nil && !errors.Is(err, runtime.ErrNotFound) {
				return nil, fmt.Errorf("measuring the memory of container %s: %w", c.Name, err)
			}
			usage[c.Name] += bytes
		}
	}
	return usage, nil
}

// measurePodMemory returns the memory usage of a pod's cgroup in bytes. If e.MeasureCgroupMemory is
// nil, it returns the sum of containers, the memory usages of the containers.
func (e *Runner) measurePodMemory(s Input, containers map[string]int64) (sum int64, err error) {
	if e.MeasureCgroupMemory != nil {
		sum, _, err = e.MeasureCgroupMemory(render.PodCgroup(s.Desired, *s.Node))
		return sum, err
	}
	for _, bytes := range containers {
		sum += bytes
	}
	return sum, nil
}
