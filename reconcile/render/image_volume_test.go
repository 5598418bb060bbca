package render

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// TestImageVolumesOf checks which versions of runtimes support image volumes, and which support a
// subPath of an image volume.
func TestImageVolumesOf(t *testing.T) {
	for of, want := range map[[2]string][2]bool{
		{"containerd", "v2.4.2"}: {true, true}, {"containerd", "2.1.0-rc.1"}: {true, false}, {"containerd", "v2.0.5"}: {},
		{"containerd", "1.6.20~ds1"}: {}, {"cri-o", "1.31.0"}: {true, false}, {"cri-o", "1.33.1"}: {true, true},
		{"other", "9.9"}: {}, {"containerd", "devel"}: {}, {"", ""}: {},
	} {
		got := SupportedImageVolumes(runtime.Node{Name: of[0], Version: of[1]})
		if got.SupportsVolumes != want[0] || got.SupportsSubPaths != want[1] {
			t.Errorf("runtime %v: got %+v, want SupportsVolumes %t and SupportsSubPaths %t", of, got, want[0], want[1])
		}
	}
}

// TestImageMount checks the mount of an image volume, and the errors if the runtime does not
// support image volumes.
func TestImageMount(t *testing.T) {
	in := inputOf(v1.Container{VolumeMounts: []v1.VolumeMount{{Name: "model", MountPath: "/model", SubPath: "a/b"}}})
	in.Pod.Object.Spec.Volumes = []v1.Volume{{Name: "model", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "model:1"}}}}
	in.Images = map[string]string{"model": "sha256:1"}
	in.Node.ImageVolumeSupport = ImageVolumeSupport{SupportsVolumes: true, SupportsSubPaths: true}
	c, err := Container(in)
	if err != nil || CheckMounts(in.Pod, in.Node) != nil {
		t.Fatal(err)
	}
	m := c.Mounts[0]
	if m.HostPath != "" || m.Image.Image != "sha256:1" || m.Image.UserSpecifiedImage != "model:1" || !m.Readonly || m.ImageSubPath != "a/b" || m.ContainerPath != "/model" {
		t.Errorf("got %v, want a read-only mount of a/b of the image at /model", m)
	}
	if subs, err := SubPaths(in); err != nil || len(subs) > 0 {
		t.Errorf("got subpaths %v (error %v), want none", subs, err)
	}
	for want, images := range map[string]ImageVolumeSupport{
		"image volumes are not supported by containerd 1.6.20": {RuntimeVersion: "containerd 1.6.20"},
		"not supported by containerd 2.1.0":                    {SupportsVolumes: true, RuntimeVersion: "containerd 2.1.0"},
	} {
		in.Node.ImageVolumeSupport = images
		_, err := Container(in)
		if before := CheckMounts(in.Pod, in.Node); err == nil || before == nil || before.Error() != err.Error() || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v from Container and error %v from CheckMounts, want equal errors with %q", err, before, want)
		}
	}
}
