package cri

import (
	"context"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// UpdateContainerResources changes the limits of a container that exists; what
// is zero stays as it is. Whether they were taken, ContainerResources tells.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, linux *api.LinuxContainerResources) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.UpdateContainerResources,
		&api.UpdateContainerResourcesRequest{ContainerId: id, Linux: linux})
	return err
}

// ContainerResources are the limits that a container has; nil where the runtime
// does not tell, as containerd 1.6.
func (c *Client) ContainerResources(ctx context.Context, id string) (*runtime.Resources, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStatus, &api.ContainerStatusRequest{ContainerId: id})
	linux := r.GetStatus().GetResources().GetLinux()
	if err != nil || linux == nil {
		return nil, err
	}
	return &runtime.Resources{
		CPUShares: linux.GetCpuShares(), CPUQuota: linux.GetCpuQuota(), CPUPeriod: linux.GetCpuPeriod(),
		Memory: linux.GetMemoryLimitInBytes(),
	}, nil
}
