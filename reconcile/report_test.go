package reconcile

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/refs"
)

// TestVolumePlugins checks that the plugin of a claim is that of its PersistentVolume, and that volumes whose
// plugin is in the manifest are omitted.
func TestVolumePlugins(t *testing.T) {
	claim := func(name string) v1.VolumeSource {
		return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	bound := func(s v1.PersistentVolumeSource) refs.Claim {
		return refs.Claim{Volume: &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: s}}}
	}
	p := &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{
		{Name: "a", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "b", VolumeSource: claim("csi")}, {Name: "c", VolumeSource: claim("nfs")}, {Name: "d", VolumeSource: claim("dir")}, {Name: "e", VolumeSource: claim("missing")},
	}}}}
	r := &refs.Resolved{Claims: map[string]refs.Claim{
		"csi": bound(v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com"}}),
		"nfs": bound(v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{}}), "dir": {},
	}}
	want := map[string]string{"b": "kubernetes.io/csi:ebs.csi.aws.com", "c": "kubernetes.io/nfs", "d": "kubernetes.io/local-volume"}
	if got := volumePlugins(p, r); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := volumePlugins(p, nil); got != nil {
		t.Errorf("without references: got %v, want none", got)
	}
}
