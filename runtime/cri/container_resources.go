package cri

import (
	"context"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// UpdateContainerResources changes the limits of an existing container. Fields that are
// zero do not change. Use ContainerResources to check the result.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, linux *api.LinuxContainerResources) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.UpdateContainerResources,
		&api.UpdateContainerResourcesRequest{ContainerId: id, Linux: linux})
	return err
}

// ContainerResources returns the limits of a container. It returns nil if the runtime does
// not report them, as in containerd 1.6.
func (c *Client) ContainerResources(ctx context.Context, id string) (*runtime.Resources, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStatus, &api.ContainerStatusRequest{ContainerId: id})
	linux := r.GetStatus().GetResources().GetLinux()
	if err != nil || linux == nil {
		return nil, err
	}
	return &runtime.Resources{
		CPUShares: linux.GetCpuShares(), CPUQuota: linux.GetCpuQuota(), CPUPeriod: linux.GetCpuPeriod(),
		MemoryLimitBytes: linux.GetMemoryLimitInBytes(),
	}, nil
}
