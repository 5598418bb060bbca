package daemon

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/server/metrics"
)

// TestImageVolumes checks the numbers of image volumes and of their mounts in a container, for each
// outcome of the start of the container.
func TestImageVolumes(t *testing.T) {
	image := v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "data:1"}}
	p := &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{
		Volumes: []v1.Volume{{Name: "data", VolumeSource: image}, {Name: "unused", VolumeSource: image}, {Name: "empty"}},
		Containers: []v1.Container{
			{Name: "main", VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/a"}, {Name: "data", MountPath: "/b"}, {Name: "empty", MountPath: "/c"}}},
			{Name: "other"},
		},
	}}}
	tests := map[string]struct {
		pod       *manifest.Pod
		container string
		err       error
		want      metrics.ImageVolumes
	}{
		"started":          {p, "main", nil, metrics.ImageVolumes{Volumes: 1, Mounts: 2, HasStarted: true}},
		"mount failed":     {p, "main", errors.New("creating the container: ImageVolumeMountFailed: no space left"), metrics.ImageVolumes{Volumes: 1, Mounts: 2, HasMountFailed: true}},
		"other failure":    {p, "main", errors.New("no such command"), metrics.ImageVolumes{Volumes: 1, Mounts: 2}},
		"no image volumes": {p, "other", nil, metrics.ImageVolumes{HasStarted: true}},
		"no pod":           {nil, "main", nil, metrics.ImageVolumes{}},
		"no container":     {p, "gone", nil, metrics.ImageVolumes{}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, imageVolumes(effect.Outcome{Pod: test.pod, Err: test.err}, test.container)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
