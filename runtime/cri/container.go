package cri

import (
	"context"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// CreateContainer creates a container in a sandbox and returns the container's ID. sandbox
// is the config from which the sandbox was created. If the image or the sandbox does not
// exist, the error is runtime.ErrNotFound.
func (c *Client) CreateContainer(ctx context.Context, sandboxID string, config *api.ContainerConfig, sandbox *api.PodSandboxConfig) (id string, err error) {
	r, err := create(ctx, c, c.timeout, c.runtime.CreateContainer,
		&api.CreateContainerRequest{PodSandboxId: sandboxID, Config: config, SandboxConfig: sandbox})
	return r.GetContainerId(), err
}

// StartContainer starts a created container. If the start fails, containerd leaves the
// container Exited with a reason, usually StartError. CRI-O removes the container; older
// versions leave it Created.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.StartContainer, &api.StartContainerRequest{ContainerId: id})
	return err
}

// StopContainer sends the stop signal to a container, kills the container after the grace period,
// and returns after it has exited. grace is rounded up to whole seconds. If grace is zero, the
// container is killed at once. StopContainer returns nil if the container is not running or does
// not exist.
//
// containerd sends the stop signal only for the first call with a grace period. To shorten
// a grace period, call StopContainer again with the time that should remain.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	grace = max(grace, 0)
	_, err := invoke(ctx, c, grace+c.timeout, c.runtime.StopContainer,
		&api.StopContainerRequest{ContainerId: id, Timeout: wholeSeconds(grace)})
	return ignoreNotFound(err)
}

// wholeSeconds rounds d up to seconds, the unit of CRI. A grace period of 0.5 s must not
// become zero.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// RemoveContainer removes a container. It returns nil if the container does not exist. The caller
// must kill a running container first, because CRI-O would otherwise let the container run until
// the deadline of the call.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.RemoveContainer, &api.RemoveContainerRequest{ContainerId: id})
	return ignoreNotFound(err)
}

// ContainerStatus returns a container. Its SandboxID is empty, because the CRI status does
// not contain it.
func (c *Client) ContainerStatus(ctx context.Context, id string) (runtime.Container, error) {
	container, err := c.queryContainer(ctx, id)
	if err == nil {
		c.responses.storeContainer(container)
	}
	return container, err
}

// queryContainer works like ContainerStatus, but does not store the response in the responseCache.
func (c *Client) queryContainer(ctx context.Context, id string) (runtime.Container, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStatus, &api.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		return runtime.Container{}, err
	}
	return containerFromStatus(r.GetStatus()), nil
}

// SandboxContainers returns the containers of a sandbox, which may be foreign. The
// containers have only the fields of a CRI list, so StartedAt, FinishedAt and ExitCode are
// not set.
func (c *Client) SandboxContainers(ctx context.Context, sandboxID string) ([]runtime.Container, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ListContainers,
		&api.ListContainersRequest{Filter: &api.ContainerFilter{PodSandboxId: sandboxID}})
	if err != nil {
		return nil, err
	}
	var containers []runtime.Container
	for _, m := range r.GetContainers() {
		containers = append(containers, runtime.Container{
			ID: m.GetId(), SandboxID: sandboxID, Name: m.GetMetadata().GetName(), Attempt: m.GetMetadata().GetAttempt(),
			State: containerState(m.GetState()), Labels: m.GetLabels(), Annotations: m.GetAnnotations(),
		})
	}
	return containers, nil
}

// ReopenContainerLog makes the runtime reopen the log file of a running container after the
// file was renamed.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.ReopenContainerLog, &api.ReopenContainerLogRequest{ContainerId: id})
	return err
}
