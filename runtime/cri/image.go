package cri

import (
	"context"
	"errors"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ImageStatus returns the image with this name or ID, and whether it is present. An invalid
// name is reported as not present: only PullImage fails for it.
func (c *Client) ImageStatus(ctx context.Context, image string) (runtime.Image, bool, error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ImageStatus, &api.ImageStatusRequest{Image: named(image)})
	switch {
	case errors.Is(err, runtime.ErrNotFound), err != nil && isInvalidName(err.Error()):
		return runtime.Image{}, false, nil
	case err != nil:
		return runtime.Image{}, false, err
	case r.GetImage() == nil:
		return runtime.Image{}, false, nil
	}
	return imageFromCRI(r.GetImage()), true, nil
}

// ListImages returns all images.
func (c *Client) ListImages(ctx context.Context) ([]runtime.Image, error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ListImages, &api.ListImagesRequest{})
	if err != nil {
		return nil, err
	}
	images := make([]runtime.Image, 0, len(r.GetImages()))
	for _, i := range r.GetImages() {
		images = append(images, imageFromCRI(i))
	}
	return images, nil
}

// PullImage pulls an image and returns the reference from which containers are created.
// auth may be nil; sandbox is the config of the pod that needs the image and may be nil.
// Only ctx limits its time. Its errors are *runtime.PullError, except those that are
// runtime.ErrUnavailable or ctx's own.
func (c *Client) PullImage(ctx context.Context, image string, auth *api.AuthConfig, sandbox *api.PodSandboxConfig) (string, error) {
	r, err := c.images.PullImage(ctx, &api.PullImageRequest{Image: named(image), Auth: auth, SandboxConfig: sandbox})
	if err != nil {
		return "", c.pullError(ctx, image, auth == nil, err)
	}
	return r.GetImageRef(), nil
}

// RemoveImage removes an image with all its names. It is not an error if the image does not
// exist.
func (c *Client) RemoveImage(ctx context.Context, image string) error {
	_, err := invoke(ctx, c, c.timeout, c.images.RemoveImage, &api.RemoveImageRequest{Image: named(image)})
	return ignoreNotFound(err)
}

// ImageFsInfo returns the disk usage of images and of containers' writable layers. The
// second is empty if the runtime stores both together.
func (c *Client) ImageFsInfo(ctx context.Context) (images, containers []runtime.Filesystem, err error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ImageFsInfo, &api.ImageFsInfoRequest{})
	if err != nil {
		return nil, nil, err
	}
	return filesystems(r.GetImageFilesystems()), filesystems(r.GetContainerFilesystems()), nil
}

func filesystems(usage []*api.FilesystemUsage) []runtime.Filesystem {
	var all []runtime.Filesystem
	for _, u := range usage {
		all = append(all, runtime.Filesystem{
			Mountpoint: u.GetFsId().GetMountpoint(),
			UsedBytes:  u.GetUsedBytes().GetValue(),
			InodesUsed: u.GetInodesUsed().GetValue(),
		})
	}
	return all
}

func named(image string) *api.ImageSpec {
	return &api.ImageSpec{Image: image, UserSpecifiedImage: image}
}
