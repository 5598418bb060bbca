package cri

import (
	"context"
	"errors"
	"fmt"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ImageStatus returns the image with this name or ID. isPresent is false if the image does
// not exist or the name is invalid. For an invalid name only PullImage returns an error. The error
// matches runtime.ErrImageDamaged if the runtime cannot read the image. A pull replaces such an image.
func (c *Client) ImageStatus(ctx context.Context, name string) (image runtime.Image, isPresent bool, err error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ImageStatus, &api.ImageStatusRequest{Image: imageSpec(name)})
	switch {
	case errors.Is(err, runtime.ErrNotFound), err != nil && isInvalidName(err.Error()):
		return runtime.Image{}, false, nil
	case err != nil:
		return runtime.Image{}, false, markUnreadable(err)
	case r.GetImage() == nil:
		return runtime.Image{}, false, nil
	}
	return imageFromCRI(r.GetImage()), true, nil
}

// ListImages returns all images on the node. If CRI-O cannot read one of them, it lists none. The error
// matches runtime.ErrImageDamaged if it contains the ID of this image.
func (c *Client) ListImages(ctx context.Context) ([]runtime.Image, error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ListImages, &api.ListImagesRequest{})
	switch {
	case errors.Is(err, runtime.ErrImageDamaged):
		return nil, fmt.Errorf("the runtime lists no images, because it cannot read one of them: %w; remove the damaged image or pull it again", err)
	case isFileTruncated(err):
		return nil, fmt.Errorf("the runtime lists no images, probably because a file of an image is truncated: %w; if so, remove this image or pull it again", err)
	case err != nil:
		return nil, err
	}
	images := make([]runtime.Image, 0, len(r.GetImages()))
	for _, i := range r.GetImages() {
		images = append(images, imageFromCRI(i))
	}
	return images, nil
}

// PullImage pulls an image and returns the reference from which containers are created.
// auth may be nil. sandbox is the config of the pod that needs the image, or nil. Only ctx
// limits the duration. The error is a *runtime.PullError, or matches runtime.ErrUnavailable
// or ctx.Err().
func (c *Client) PullImage(ctx context.Context, image string, auth *api.AuthConfig, sandbox *api.PodSandboxConfig) (ref string, err error) {
	r, err := c.images.PullImage(ctx, &api.PullImageRequest{Image: imageSpec(image), Auth: auth, SandboxConfig: sandbox})
	if err != nil {
		return "", c.pullError(ctx, image, auth == nil, err)
	}
	return r.GetImageRef(), nil
}

// RemoveImage removes an image and all its names. It returns nil if the image does not
// exist.
func (c *Client) RemoveImage(ctx context.Context, image string) error {
	_, err := invoke(ctx, c, c.timeout, c.images.RemoveImage, &api.RemoveImageRequest{Image: imageSpec(image)})
	return ignoreNotFound(err)
}

// ImageFsInfo returns the disk usage of images and of containers' writable layers.
// containers is empty if the runtime stores both on the same file system.
func (c *Client) ImageFsInfo(ctx context.Context) (images, containers []runtime.Filesystem, err error) {
	r, err := invoke(ctx, c, c.timeout, c.images.ImageFsInfo, &api.ImageFsInfoRequest{})
	if err != nil {
		return nil, nil, err
	}
	return filesystems(r.GetImageFilesystems()), filesystems(r.GetContainerFilesystems()), nil
}

// filesystems converts disk usage from its CRI type.
func filesystems(usage []*api.FilesystemUsage) []runtime.Filesystem {
	var list []runtime.Filesystem
	for _, u := range usage {
		list = append(list, runtime.Filesystem{
			Mountpoint: u.GetFsId().GetMountpoint(),
			UsedBytes:  u.GetUsedBytes().GetValue(),
			InodesUsed: u.GetInodesUsed().GetValue(),
		})
	}
	return list
}

// imageSpec returns the ImageSpec for a name or ID. CRI-O requires UserSpecifiedImage.
func imageSpec(image string) *api.ImageSpec {
	return &api.ImageSpec{Image: image, UserSpecifiedImage: image}
}
