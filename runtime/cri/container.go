package cri

import (
	"context"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// CreateContainer makes a container in a sandbox and returns its id. sandbox is
// the config that the sandbox was made from. A missing image or sandbox is
// runtime.ErrNotFound.
func (c *Client) CreateContainer(ctx context.Context, sandboxID string, config *api.ContainerConfig, sandbox *api.PodSandboxConfig) (string, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.CreateContainer,
		&api.CreateContainerRequest{PodSandboxId: sandboxID, Config: config, SandboxConfig: sandbox})
	return r.GetContainerId(), err
}

// StartContainer starts a created container. A container whose start failed is
// Exited with a reason of the runtime's, as a rule StartError.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.StartContainer, &api.StartContainerRequest{ContainerId: id})
	return err
}

// StopContainer asks a container to end, kills it when grace is over, and
// returns when it has ended. grace is rounded up to whole seconds; zero kills
// at once. A container that does not run, or does not exist, is stopped.
//
// containerd sends the stop signal only for the first call that has a grace:
// to shorten a grace, call again with what is left of it.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	grace = max(grace, 0)
	_, err := invoke(ctx, c, grace+c.timeout, c.runtime.StopContainer,
		&api.StopContainerRequest{ContainerId: id, Timeout: wholeSeconds(grace)})
	return gone(err)
}

// wholeSeconds rounds up: CRI counts in seconds and a grace of 0.5 s is not none.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// RemoveContainer removes a container, by force where it runs. One that is gone
// is removed.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.RemoveContainer, &api.RemoveContainerRequest{ContainerId: id})
	return gone(err)
}

// ContainerStatus returns a container; SandboxID stays empty, CRI does not say.
func (c *Client) ContainerStatus(ctx context.Context, id string) (runtime.Container, error) {
	found, err := c.askContainer(ctx, id)
	if err == nil {
		c.answers.keepContainer(found)
	}
	return found, err
}

func (c *Client) askContainer(ctx context.Context, id string) (runtime.Container, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStatus, &api.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		return runtime.Container{}, err
	}
	return containerFromStatus(r.GetStatus()), nil
}

// SandboxContainers lists the containers of a sandbox, whoever made it, with
// what a list tells: no start, no exit.
func (c *Client) SandboxContainers(ctx context.Context, sandboxID string) ([]runtime.Container, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ListContainers,
		&api.ListContainersRequest{Filter: &api.ContainerFilter{PodSandboxId: sandboxID}})
	if err != nil {
		return nil, err
	}
	var all []runtime.Container
	for _, m := range r.GetContainers() {
		all = append(all, runtime.Container{
			ID: m.GetId(), SandboxID: sandboxID, Name: m.GetMetadata().GetName(), Attempt: m.GetMetadata().GetAttempt(),
			State: containerState(m.GetState()), Labels: m.GetLabels(), Annotations: m.GetAnnotations(),
		})
	}
	return all, nil
}

// ReopenContainerLog makes the runtime open a running container's log file
// again, after it was moved away.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.ReopenContainerLog, &api.ReopenContainerLogRequest{ContainerId: id})
	return err
}
