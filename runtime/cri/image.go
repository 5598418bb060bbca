package cri

import (
	"context"
	"errors"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ImageStatus returns the image of that name or id, and whether it is present.
func (c *Client) ImageStatus(ctx context.Context, image string) (runtime.Image, bool, error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ImageStatus, &api.ImageStatusRequest{Image: named(image)})
	switch {
	case errors.Is(err, runtime.ErrNotFound):
		return runtime.Image{}, false, nil
	case err != nil:
		return runtime.Image{}, false, err
	case r.GetImage() == nil:
		return runtime.Image{}, false, nil
	}
	return imageFromCRI(r.GetImage()), true, nil
}

// ListImages returns every image.
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

// PullImage pulls an image and returns the reference that containers are
// created from. auth may be nil; sandbox is the config of the pod that wants
// the image and may be nil. It takes as long as ctx lasts. Its errors are
// *runtime.PullError, except those that are runtime.ErrUnavailable or ctx's own.
func (c *Client) PullImage(ctx context.Context, image string, auth *api.AuthConfig, sandbox *api.PodSandboxConfig) (string, error) {
	r, err := c.images.PullImage(ctx, &api.PullImageRequest{Image: named(image), Auth: auth, SandboxConfig: sandbox})
	if err != nil {
		return "", c.pullError(ctx, image, auth == nil, err)
	}
	return r.GetImageRef(), nil
}

// RemoveImage removes an image with all its names. One that is gone is removed.
func (c *Client) RemoveImage(ctx context.Context, image string) error {
	_, err := invoke(ctx, c, c.timeout, c.images.RemoveImage, &api.RemoveImageRequest{Image: named(image)})
	return gone(err)
}

// ImageFsInfo returns what images and what containers' own layers take; the
// second is empty where the runtime keeps both together.
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
