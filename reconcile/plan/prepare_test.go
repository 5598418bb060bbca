package plan

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// TestVolumesFirst checks that the sandbox waits for volumes of drivers and servers, but not for
// volumes that the node itself provides.
func TestVolumesFirst(t *testing.T) {
	claim, ephemeral := &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}, &v1.EphemeralVolumeSource{}
	for _, c := range []struct {
		kind  string
		is    v1.VolumeSource
		first bool
	}{
		{manifest.KindFile, v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}, false},
		{manifest.KindAPI, v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}, false},
		{manifest.KindAPI, v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}, false},
		{manifest.KindFile, v1.VolumeSource{Ephemeral: ephemeral}, false},
		{manifest.KindAPI, v1.VolumeSource{Ephemeral: ephemeral}, true},
		{manifest.KindFile, v1.VolumeSource{PersistentVolumeClaim: claim}, true},
		{manifest.KindAPI, v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "d"}}, true},
		{manifest.KindFile, v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}, true},
	} {
		p := &manifest.Pod{Traits: manifest.KindTraits(c.kind), Object: &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{
			{Name: "own", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}, {Name: "data", VolumeSource: c.is},
		}}}}
		if got := (&facts{in: &Input{Desired: p}}).mustPrepareVolumesFirst(); got != c.first {
			t.Errorf("pod of %s with %+v: got %v, want %v", c.kind, c.is, got, c.first)
		}
	}
}
