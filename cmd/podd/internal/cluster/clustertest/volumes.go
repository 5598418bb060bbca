package clustertest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// NewPodWithVolumes returns a pod of the service account robot with volumes. It is bound to the node n1. The
// UID is "uid-" and the name of the pod.
func NewPodWithVolumes(name string, volumes ...v1.VolumeSource) *v1.Pod {
	p := NewBoundPod(name, "1")
	p.UID, p.Spec.ServiceAccountName = types.UID("uid-"+name), "robot"
	for i, source := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprint("v", i), VolumeSource: source})
	}
	return p
}

// ClaimVolume returns a volume of a claim.
func ClaimVolume(name string) v1.VolumeSource {
	return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

// DiskDriver is the CSI driver of the volume of PutDiskPod, and DiskVolume is the unique name of this volume.
const (
	DiskDriver = "disk.example"
	DiskVolume = v1.UniqueVolumeName("kubernetes.io/csi/disk.example^h")
)

// PutDiskPod stores the pod a. It uses the claim data, which is bound to the volume pv1 with the handle h of
// DiskDriver. The caller must hold Mu.
func (f *API) PutDiskPod() {
	claim, volume := &v1.PersistentVolumeClaim{ObjectMeta: Meta("data")}, &v1.PersistentVolume{}
	claim.UID, claim.Status.Phase, claim.Spec.VolumeName = "c1", v1.ClaimBound, "pv1"
	claim.Status.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{Namespace: "default", Name: "data", UID: "c1"}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: DiskDriver, VolumeHandle: "h"}
	volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	f.PutObject("persistentvolumes", volume, "ADDED")
	f.PutObject("persistentvolumeclaims", claim, "ADDED")
	f.PutPod(NewPodWithVolumes("a", ClaimVolume("data")), "ADDED")
}

// SetVolumesAttached sets volumesAttached in the Node's status, as the attach-detach controller does. The
// caller must hold Mu.
func (f *API) SetVolumesAttached(names ...v1.UniqueVolumeName) {
	n := f.Node.DeepCopy()
	n.Status.VolumesAttached = nil
	for _, name := range names {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, v1.AttachedVolume{Name: name})
	}
	f.PutNode(n, "MODIFIED")
}
