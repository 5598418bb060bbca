package refs

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/disk"
)

// diskRef returns the reference to the attachment of an iSCSI or Fibre Channel volume of a pod of an
// API server. It returns nil for other volumes, and if the claim or PersistentVolume is missing. The
// attach-detach controller creates no VolumeAttachment for such a volume. Therefore the name of the object
// is that of the volume in the status of the Node.
func (o *lookup) diskRef(pod *v1.Pod, i int) *Ref {
	if !o.IsFromServer() {
		return nil
	}
	name := o.diskVolumeName(pod, i)
	if name == "" {
		return nil
	}
	ref := manifest.ObjectRef{Kind: manifest.AttachmentKind, NamespacedName: types.NamespacedName{Name: string(name)}}
	return &Ref{Object: ref, role: forDriver, FieldPath: fmt.Sprintf("spec.volumes[%d]", i), Volume: name}
}

// diskVolumeName returns the name that an iSCSI or Fibre Channel volume has in the status of a Node, or
// "" for other volumes.
func (o *lookup) diskVolumeName(pod *v1.Pod, i int) v1.UniqueVolumeName {
	switch v := &pod.Spec.Volumes[i]; {
	case v.ISCSI != nil:
		return disk.UniqueISCSIName(disk.PersistentSource(v.ISCSI))
	case v.FC != nil:
		return disk.UniqueFCName(v.FC)
	}
	switch _, _, pv := o.claimedVolume(pod, i); {
	case pv == nil:
	case pv.Spec.ISCSI != nil:
		return disk.UniqueISCSIName(pv.Spec.ISCSI)
	case pv.Spec.FC != nil:
		return disk.UniqueFCName(pv.Spec.FC)
	}
	return ""
}
