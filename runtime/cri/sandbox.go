package cri

import (
	"context"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// RunPodSandbox makes and starts the sandbox that config describes under a
// runtime handler ("" is the default one) and returns its id. When it fails
// with runtime.ErrUnavailable the sandbox may exist all the same; when the name
// is held by an interrupted call it is runtime.ErrNameReserved.
func (c *Client) RunPodSandbox(ctx context.Context, config *api.PodSandboxConfig, handler string) (string, error) {
	r, err := invoke(ctx, c, 2*c.timeout, c.runtime.RunPodSandbox,
		&api.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	return r.GetPodSandboxId(), sandboxImage(err)
}

// StopPodSandbox kills what still runs in a sandbox and frees its network. It
// may be called again, and for a sandbox that is gone.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.StopPodSandbox, &api.StopPodSandboxRequest{PodSandboxId: id})
	return gone(err)
}

// RemovePodSandbox removes a sandbox and every container in it, by force where
// they run. One that is gone is removed.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.RemovePodSandbox, &api.RemovePodSandboxRequest{PodSandboxId: id})
	return gone(err)
}

// PodSandboxStatus returns a sandbox with its addresses. Foreign is not set:
// the client does not know whose podd it serves.
func (c *Client) PodSandboxStatus(ctx context.Context, id string) (runtime.Sandbox, error) {
	s, err := c.askSandbox(ctx, id)
	if err == nil {
		c.answers.keepSandbox(s)
	}
	return s, err
}

func (c *Client) askSandbox(ctx context.Context, id string) (runtime.Sandbox, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.PodSandboxStatus, &api.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil {
		return runtime.Sandbox{}, err
	}
	return sandboxFromStatus(r.GetStatus()), nil
}
