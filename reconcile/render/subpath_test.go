package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// TestSubPaths checks the paths of volume mounts with subPath or subPathExpr.
func TestSubPaths(t *testing.T) {
	yes := true
	in := inputOf(v1.Container{
		Env: []v1.EnvVar{{Name: "A", Value: "x/y"}, {Name: "POD", ValueFrom: field("metadata.name")}},
		VolumeMounts: []v1.VolumeMount{
			{Name: "v", MountPath: "/whole"},
			{Name: "v", MountPath: "/a", SubPath: "a//b/."},
			{Name: "v", MountPath: "/b", SubPathExpr: "$(POD)/$(A)"},
			{Name: "v", MountPath: "/c", SubPathExpr: "$$(A)"},
			{Name: "c", MountPath: "/d", SubPath: "key"},
			{Name: "o", MountPath: "/e", SubPath: "key"},
		},
	})
	in.Pod.Object.Spec.Volumes = []v1.Volume{
		{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "c", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}},
		{Name: "o", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{Optional: &yes}}},
	}
	want := []SubPath{
		{MountIndex: 1, Volume: "v", Path: "a/b", ManifestText: "a//b/.", CreateMissing: true},
		{MountIndex: 2, Volume: "v", Path: "pod/x/y", ManifestText: "$(POD)/$(A)", CreateMissing: true},
		{MountIndex: 3, Volume: "v", Path: "$(A)", ManifestText: "$$(A)", CreateMissing: true},
		{MountIndex: 4, Volume: "c", Path: "key", ManifestText: "key"},
		{MountIndex: 5, Volume: "o", Path: "key", ManifestText: "key", CreateMissing: true},
	}
	got, err := SubPaths(in)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("got error %v, subpaths (-want +got)\n%s", err, diff)
	}
}

// TestSubPaths_Errors checks that errors name the mount and contain no values.
func TestSubPaths_Errors(t *testing.T) {
	for expr, want := range map[string]string{
		"$(NONE)/$(EMPTY)": "the container has no variable NONE, EMPTY",
		"$(ROOT)":          "must not begin with /",
		"a/$(UP)":          `must not contain the path element ".."`,
	} {
		_, err := SubPaths(inputOf(v1.Container{
			Env:          []v1.EnvVar{{Name: "EMPTY"}, {Name: "ROOT", Value: "/hunter2"}, {Name: "UP", Value: "../hunter2"}},
			VolumeMounts: []v1.VolumeMount{{Name: "v", MountPath: "/x", SubPathExpr: expr}},
		}))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"v" into container "main"`) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got error %v, want one with %q and the mount, without values of variables", expr, err, want)
		}
	}
}
