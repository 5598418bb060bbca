package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// imageVolume implements volumeType for volumes of type image. The runtime mounts the image, so
// podd prepares nothing, and the volume has no path on the host.
type imageVolume struct{}

func (imageVolume) matches(v *v1.Volume) bool { return v.Image != nil }

func (imageVolume) check(*podDir, *v1.Volume) (string, error) { return "", nil }

func (imageVolume) prepare(context.Context, *podDir, *v1.Volume) (string, error) { return "", nil }
