package render

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ImageVolumes is what a runtime serves of volumes that are images. No feature
// says so; an older runtime would mount something else, and in silence.
type ImageVolumes struct {
	Whole, Parts bool
	Runtime      string // and its version, for messages
}

// ImageVolumesOf goes by the runtime's version.
func ImageVolumesOf(n runtime.Node) ImageVolumes {
	return ImageVolumes{
		Whole:   n.Reaches(runtime.Since{"containerd": {2, 1}, "cri-o": {1, 31}}),
		Parts:   n.Reaches(runtime.Since{"containerd": {2, 2}, "cri-o": {1, 33}}),
		Runtime: n.Name + " " + n.Version,
	}
}

func (v ImageVolumes) check(m *v1.VolumeMount) error {
	switch {
	case !v.Whole:
		return fmt.Errorf("the volume is an image, and %s mounts none; containerd 2.1 and CRI-O 1.31 do", v.Runtime)
	case !v.Parts && m.SubPath+m.SubPathExpr != "":
		return fmt.Errorf("the volume is an image, and %s mounts only whole ones; leave out the subPath", v.Runtime)
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
