package volumeplugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestName checks the name for a claim with each type of PersistentVolume.
func TestName(t *testing.T) {
	claim := v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}}
	pv := func(s v1.PersistentVolumeSource) *v1.PersistentVolume {
		return &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: s}}
	}
	for _, test := range []struct {
		volume v1.VolumeSource
		pv     *v1.PersistentVolume
		want   string
	}{
		{v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}, nil, "kubernetes.io/empty-dir"},
		{v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "d"}}, nil, "kubernetes.io/csi:d"},
		{claim, nil, "kubernetes.io/local-volume"},
		{claim, pv(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{}}), "kubernetes.io/local-volume"},
		{claim, pv(v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{}}), "kubernetes.io/host-path"},
		{claim, pv(v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{}}), "kubernetes.io/nfs"},
		{claim, pv(v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{}}), "kubernetes.io/iscsi"},
		{claim, pv(v1.PersistentVolumeSource{FC: &v1.FCVolumeSource{}}), "kubernetes.io/fc"},
		{claim, pv(v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "d"}}), "kubernetes.io/csi:d"},
	} {
		if got := Name(&v1.Volume{VolumeSource: test.volume}, test.pv); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
