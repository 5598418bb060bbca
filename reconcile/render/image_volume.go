package render

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ImageVolumeSupport describes which image volumes a runtime supports. SupportsVolumes reports
// whether it supports volumes without subPath, and SupportsSubPaths reports whether it also
// supports a subPath. podd decides this by the version of the runtime, because runtimes do not
// report the feature, and older runtimes silently mount something else.
type ImageVolumeSupport struct {
	SupportsVolumes, SupportsSubPaths bool
	RuntimeVersion                    string // name and version of the runtime, for messages
}

// SupportedImageVolumes returns the image volumes that a runtime of this version supports.
func SupportedImageVolumes(n runtime.Node) ImageVolumeSupport {
	return ImageVolumeSupport{
		SupportsVolumes:  n.HasMinVersion(runtime.MinVersions{"containerd": {2, 1}, "cri-o": {1, 31}}),
		SupportsSubPaths: n.HasMinVersion(runtime.MinVersions{"containerd": {2, 2}, "cri-o": {1, 33}}),
		RuntimeVersion:   n.Name + " " + n.Version,
	}
}

func (v ImageVolumeSupport) check(m *v1.VolumeMount) error {
	switch {
	case !v.SupportsVolumes:
		return fmt.Errorf("image volumes are not supported by %s; upgrade the runtime (minimum: containerd 2.1 or CRI-O 1.31)", v.RuntimeVersion)
	case !v.SupportsSubPaths && m.SubPath+m.SubPathExpr != "":
		return fmt.Errorf("a subPath of an image volume is not supported by %s; upgrade the runtime (minimum: containerd 2.2 or CRI-O 1.33), or remove the subPath", v.RuntimeVersion)
	}
	return nil
}

func imageMount(in *ContainerInput, m *v1.VolumeMount, source *v1.ImageVolumeSource) (*cri.Mount, error) {
	if err := in.Node.ImageVolumeSupport.check(m); err != nil {
		return nil, err
	}
	part, err := subPath(in, m)
	if err != nil {
		return nil, err
	}
	return &cri.Mount{
		ContainerPath: makeAbsolute(m.MountPath),
		Readonly:      true,
		Image:         &cri.ImageSpec{Image: in.Images[m.Name], UserSpecifiedImage: source.Reference},
		ImageSubPath:  part,
	}, nil
}
