package cri

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// RunPodSandbox creates and starts a sandbox and returns its ID. handler is the name of the
// runtime handler; "" means the default. If the error is runtime.ErrUnavailable, the
// sandbox may exist anyway. If the name is reserved for an interrupted call, the error is
// runtime.ErrNameReserved.
func (c *Client) RunPodSandbox(ctx context.Context, config *api.PodSandboxConfig, handler string) (id string, err error) {
	r, err := create(ctx, c, 2*c.timeout, c.runtime.RunPodSandbox,
		&api.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	return r.GetPodSandboxId(), explainSandboxImage(err)
}

// StopPodSandbox stops the processes of a sandbox and releases its network. It may be called again,
// and returns nil if the sandbox does not exist. The caller must kill the containers first, because
// CRI-O would otherwise let them run until the deadline of the call.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.StopPodSandbox, &api.StopPodSandboxRequest{PodSandboxId: id})
	return ignoreNotFound(err)
}

// RemovePodSandbox removes a sandbox and its containers. It returns nil if the sandbox does not
// exist. The caller must kill the containers first, as for StopPodSandbox.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.RemovePodSandbox, &api.RemovePodSandboxRequest{PodSandboxId: id})
	return ignoreNotFound(err)
}

// UpdatePodSandboxResources announces new resources of a pod to the runtime, which informs its NRI
// plugins. It must be called before the cgroup of the pod is changed, because a plugin can reject the
// new resources with an error. The runtime itself changes no limit. resources does not include
// overhead, the resources of the sandbox itself. If the runtime does not implement the call, as
// containerd before 2.3, the error is runtime.ErrUnimplemented.
func (c *Client) UpdatePodSandboxResources(ctx context.Context, id string, overhead, resources *api.LinuxContainerResources) error {
	_, err := invoke(ctx, c, c.timeout, c.runtime.UpdatePodSandboxResources,
		&api.UpdatePodSandboxResourcesRequest{PodSandboxId: id, Overhead: overhead, Resources: resources})
	return err
}

// PodSandboxStatus returns a sandbox with its addresses. It does not set Foreign, because a
// client has no instance ID.
func (c *Client) PodSandboxStatus(ctx context.Context, id string) (runtime.Sandbox, error) {
	s, err := c.querySandbox(ctx, id)
	if err == nil {
		c.responses.storeSandbox(s)
	}
	return s, err
}

// ReadySandboxes returns all ready sandboxes with the name of a pod, including foreign
// ones. It does not set IPs and Foreign.
func (c *Client) ReadySandboxes(ctx context.Context, pod types.NamespacedName) ([]runtime.Sandbox, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ListPodSandbox, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{
		State:         &api.PodSandboxStateValue{State: api.PodSandboxState_SANDBOX_READY},
		LabelSelector: map[string]string{runtime.LabelPodName: pod.Name, runtime.LabelPodNamespace: pod.Namespace},
	}})
	if err != nil {
		return nil, err
	}
	var sandboxes []runtime.Sandbox
	for _, s := range r.GetItems() {
		sandboxes = append(sandboxes, runtime.Sandbox{
			ID: s.GetId(), UID: types.UID(s.GetMetadata().GetUid()), Attempt: s.GetMetadata().GetAttempt(), Ready: isReady(s.GetState()),
			CreatedAt: timeOf(s.GetCreatedAt()), Labels: s.GetLabels(), Annotations: s.GetAnnotations(),
		})
	}
	return sandboxes, nil
}

// querySandbox works like PodSandboxStatus, but does not store the response in the responseCache.
func (c *Client) querySandbox(ctx context.Context, id string) (runtime.Sandbox, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.PodSandboxStatus, &api.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil {
		return runtime.Sandbox{}, err
	}
	return sandboxFromStatus(r.GetStatus()), nil
}
