package cri

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// RunPodSandbox creates and starts a sandbox with a runtime handler ("" is the default one)
// and returns its ID. After runtime.ErrUnavailable the sandbox may exist anyway. If an
// interrupted call holds the name, the error is runtime.ErrNameReserved.
func (c *Client) RunPodSandbox(ctx context.Context, config *api.PodSandboxConfig, handler string) (string, error) {
	r, err := create(ctx, c, 2*c.timeout, c.runtime.RunPodSandbox,
		&api.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	return r.GetPodSandboxId(), sandboxImage(err)
}

// StopPodSandbox releases the network of a sandbox and stops its processes. It may be
// called again, and for a sandbox that does not exist. Its containers must be killed first,
// because CRI-O gives them as long as the call may last.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.StopPodSandbox, &api.StopPodSandboxRequest{PodSandboxId: id})
	return ignoreNotFound(err)
}

// RemovePodSandbox removes a sandbox and every container in it, which must not run, as for
// StopPodSandbox. It is not an error if the sandbox does not exist.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.RemovePodSandbox, &api.RemovePodSandboxRequest{PodSandboxId: id})
	return ignoreNotFound(err)
}

// PodSandboxStatus returns a sandbox with its addresses. Foreign is not set, because the
// client does not know its instance.
func (c *Client) PodSandboxStatus(ctx context.Context, id string) (runtime.Sandbox, error) {
	s, err := c.querySandbox(ctx, id)
	if err == nil {
		c.responses.keepSandbox(s)
	}
	return s, err
}

// ReadySandboxes returns the ready sandboxes of a pod's name, including foreign ones, without
// their addresses. Foreign is not set.
func (c *Client) ReadySandboxes(ctx context.Context, pod types.NamespacedName) ([]runtime.Sandbox, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ListPodSandbox, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{
		State:         &api.PodSandboxStateValue{State: api.PodSandboxState_SANDBOX_READY},
		LabelSelector: map[string]string{runtime.LabelPodName: pod.Name, runtime.LabelPodNamespace: pod.Namespace},
	}})
	if err != nil {
		return nil, err
	}
	var all []runtime.Sandbox
	for _, s := range r.GetItems() {
		all = append(all, runtime.Sandbox{
			ID: s.GetId(), UID: types.UID(s.GetMetadata().GetUid()), Attempt: s.GetMetadata().GetAttempt(), Ready: ready(s.GetState()),
			CreatedAt: timeOf(s.GetCreatedAt()), Labels: s.GetLabels(), Annotations: s.GetAnnotations(),
		})
	}
	return all, nil
}

func (c *Client) querySandbox(ctx context.Context, id string) (runtime.Sandbox, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.PodSandboxStatus, &api.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil {
		return runtime.Sandbox{}, err
	}
	return sandboxFromStatus(r.GetStatus()), nil
}
