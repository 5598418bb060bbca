package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// image implements volumeType for volumes of type image. The runtime mounts the image, so
// podd prepares nothing, and the volume has no path on the host.
type image struct{}

func (image) field() string { return "image" }

func (image) matches(v *v1.Volume) bool { return v.Image != nil }

func (image) check(*podDir, *v1.Volume) (string, error) { return "", nil }

func (image) prepare(context.Context, *podDir, *v1.Volume) (string, error) { return "", nil }
