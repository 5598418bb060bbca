package render

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ImageVolumes describes which image volumes a runtime supports: Whole without subPath, and Parts
// with subPath. This depends on the runtime's version, because runtimes do not report it as a
// feature, and older runtimes silently mount something else.
type ImageVolumes struct {
	Whole, Parts bool
	Runtime      string // name and version of the runtime, for messages
}

// SupportedImageVolumes returns which image volumes a runtime supports, according to its
// version.
func SupportedImageVolumes(n runtime.Node) ImageVolumes {
	return ImageVolumes{
		Whole:   n.HasVersion(runtime.MinVersions{"containerd": {2, 1}, "cri-o": {1, 31}}),
		Parts:   n.HasVersion(runtime.MinVersions{"containerd": {2, 2}, "cri-o": {1, 33}}),
		Runtime: n.Name + " " + n.Version,
	}
}

func (v ImageVolumes) check(m *v1.VolumeMount) error {
	switch {
	case !v.Whole:
		return fmt.Errorf("image volumes are not supported by %s; use containerd 2.1 or CRI-O 1.31", v.Runtime)
	case !v.Parts && m.SubPath+m.SubPathExpr != "":
		return fmt.Errorf("a subPath of an image volume is not supported by %s; remove the subPath", v.Runtime)
	}
	return nil
}

func imageMount(in *ContainerInput, m *v1.VolumeMount, source *v1.ImageVolumeSource) (*cri.Mount, error) {
	if err := in.Node.Images.check(m); err != nil {
		return nil, err
	}
	part, err := subPath(in, m)
	if err != nil {
		return nil, err
	}
	return &cri.Mount{
		ContainerPath: absolute(m.MountPath),
		Readonly:      true,
		Image:         &cri.ImageSpec{Image: in.Images[m.Name], UserSpecifiedImage: source.Reference},
		ImageSubPath:  part,
	}, nil
}
