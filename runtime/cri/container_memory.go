package cri

import (
	"context"
	"errors"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// errNoMemoryUsage is the error of ContainerMemory if the runtime reports no memory usage.
var errNoMemoryUsage = errors.New("the runtime does not report the memory usage")

// ContainerMemory returns the memory usage of a container in bytes, including the page cache. If
// the runtime reports only the working set, it returns the working set. If the runtime reports
// neither, it returns an error and not 0, because a resize must not lower a memory limit below the
// usage.
func (c *Client) ContainerMemory(ctx context.Context, id string) (int64, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStats, &api.ContainerStatsRequest{ContainerId: id})
	if err != nil {
		return 0, err
	}
	memory := r.GetStats().GetMemory()
	for _, usage := range []*api.UInt64Value{memory.GetUsageBytes(), memory.GetWorkingSetBytes()} {
		if usage != nil {
			return int64(usage.GetValue()), nil
		}
	}
	return 0, errNoMemoryUsage
}
