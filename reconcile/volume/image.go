package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// image is an image volume. The runtime mounts it, so there is nothing to prepare and no
// path.
type image struct{}

func (image) source() string { return "image" }

func (image) serves(v *v1.Volume) bool { return v.Image != nil }

func (image) check(*place, *v1.Volume) (string, error) { return "", nil }

func (image) prepare(context.Context, *place, *v1.Volume) (string, error) { return "", nil }
