package cri

import (
	"context"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerMemory returns the memory usage of a container in bytes, including the page
// cache, or its working set if the runtime reports only that.
func (c *Client) ContainerMemory(ctx context.Context, id string) (int64, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStats, &api.ContainerStatsRequest{ContainerId: id})
	memory := r.GetStats().GetMemory()
	if used := memory.GetUsageBytes(); used != nil {
		return int64(used.GetValue()), err
	}
	return int64(memory.GetWorkingSetBytes().GetValue()), err
}
