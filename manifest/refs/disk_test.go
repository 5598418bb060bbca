package refs_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
)

// TestResolved_DiskAttachment checks that a pod of a cluster waits until its iSCSI and Fibre Channel
// volumes are attached, both inline volumes and PersistentVolumes.
func TestResolved_DiskAttachment(t *testing.T) {
	const iscsi, fc = v1.UniqueVolumeName("kubernetes.io/iscsi/192.0.2.1:iqn.2001-04.com.example:disk:1"), v1.UniqueVolumeName("kubernetes.io/fc/[w1]")
	p := clusterPod()
	p.Object.Spec = v1.PodSpec{NodeName: "n1", ServiceAccountName: "default", Volumes: []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "own", VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk", Lun: 1}}},
		{Name: "empty", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	}}
	o := clusterObjects(p)
	o.Volumes[types.NamespacedName{Name: "pv1"}].Spec.FC = &v1.FCVolumeSource{WWIDs: []string{"w1"}}
	var names []v1.UniqueVolumeName
	for _, u := range refs.ListDriverRefs(&o, p.Object) {
		names = append(names, u.Volume)
	}
	if want := []v1.UniqueVolumeName{fc, iscsi}; !slices.Equal(names, want) {
		t.Errorf("volumes to attach: got %v, want %v", names, want)
	}
	check := func(when string, want refs.Blocker) {
		t.Helper()
		if _, s := resolve(p, o, nil); s.Blocker != want {
			t.Errorf("%s: got Blocker %+v, want %+v", when, s.Blocker, want)
		}
	}
	check("not looked up", refs.Blocker{MissingMessage: "whether a volume is attached is being looked up", EndsByItself: true})
	o.Cluster.AttachedVolumes = map[string]map[string]string{string(fc): nil}
	notAttached := manifest.MissingObject{Message: "not attached yet", WillExist: true}
	o.Cluster.Missing = map[manifest.ObjectRef]manifest.MissingObject{
		{Kind: manifest.AttachmentKind, NamespacedName: types.NamespacedName{Name: string(iscsi)}}: notAttached,
	}
	check("one attached", refs.Blocker{MissingMessage: "not attached yet", Volume: "own", EndsByItself: true})
	o.Cluster.Missing = nil
	o.Cluster.AttachedVolumes[string(iscsi)] = nil
	check("both attached", refs.Blocker{})
}
