package cri

import (
	"context"
	"errors"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// errNoMemory is the error of ContainerMemory if the runtime reports no memory usage.
var errNoMemory = errors.New("the runtime does not report the memory usage")

// ContainerMemory returns the memory usage of a container in bytes, including the page
// cache, or its working set if the runtime reports only that. It returns an error if the
// runtime reports neither, because 0 would allow any memory limit.
func (c *Client) ContainerMemory(ctx context.Context, id string) (int64, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStats, &api.ContainerStatsRequest{ContainerId: id})
	if err != nil {
		return 0, err
	}
	memory := r.GetStats().GetMemory()
	for _, used := range []*api.UInt64Value{memory.GetUsageBytes(), memory.GetWorkingSetBytes()} {
		if used != nil {
			return int64(used.GetValue()), nil
		}
	}
	return 0, errNoMemory
}
