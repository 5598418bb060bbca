package cri

import (
	"cmp"
	"context"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ListContainerImages returns all containers of the runtime with their images. The result includes
// exited containers, and containers that other programs have created.
func (c *Client) ListContainerImages(ctx context.Context) ([]runtime.ContainerImage, error) {
	list := func(ctx context.Context, q *api.ListContainersRequest, o ...grpc.CallOption) (*api.ListContainersResponse, error) {
		return c.runtime.ListContainers(ctx, q, append(o, grpc.MaxCallRecvMsgSize(maxListSize))...)
	}
	r, err := invoke(ctx, c, c.timeout, list, &api.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	images := make([]runtime.ContainerImage, 0, len(r.GetContainers()))
	for _, m := range r.GetContainers() {
		labels := m.GetLabels()
		images = append(images, runtime.ContainerImage{
			ID:  m.GetId(),
			Pod: types.NamespacedName{Namespace: labels[runtime.LabelPodNamespace], Name: labels[runtime.LabelPodName]},
			// Only new runtimes report the image ID. In containerd, the reference is the image ID, too.
			Image: cmp.Or(m.GetImageId(), m.GetImageRef(), m.GetImage().GetImage()),
		})
	}
	return images, nil
}

// MountedImages returns the names or IDs of the images that a container mounts as volumes. They
// never change. If the container does not exist, the error is runtime.ErrNotFound.
func (c *Client) MountedImages(ctx context.Context, containerID string) ([]string, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ContainerStatus, &api.ContainerStatusRequest{ContainerId: containerID})
	if err != nil {
		return nil, err
	}
	var images []string
	for _, m := range r.GetStatus().GetMounts() {
		if name := m.GetImage().GetImage(); name != "" {
			images = append(images, name)
		}
	}
	return images, nil
}
