package cri

import (
	"context"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerMemory is how many bytes of memory a container uses that the kernel
// cannot take back from it (its working set).
func (c *Client) ContainerMemory(ctx context.Context, id string) (int64, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStats, &api.ContainerStatsRequest{ContainerId: id})
	return int64(r.GetStats().GetMemory().GetWorkingSetBytes().GetValue()), err
}
