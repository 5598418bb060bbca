package refs

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/disk"
)

// DiskVolumeNames returns the names that the iSCSI and Fibre Channel volumes of a pod have in the status
// of a Node. It omits a volume whose claim or PersistentVolume is missing.
func DiskVolumeNames(o *manifest.Objects, pod *v1.Pod) (names []v1.UniqueVolumeName) {
	var l *lookup
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.ISCSI != nil:
			names = append(names, disk.UniqueISCSIName(disk.PersistentSource(v.ISCSI)))
		case v.FC != nil:
			names = append(names, disk.UniqueFCName(v.FC))
		case v.PersistentVolumeClaim != nil || v.Ephemeral != nil:
			if l == nil {
				l = newLookup(o)
			}
			switch _, _, pv := l.claimedVolume(pod, i); {
			case pv == nil:
			case pv.Spec.ISCSI != nil:
				names = append(names, disk.UniqueISCSIName(pv.Spec.ISCSI))
			case pv.Spec.FC != nil:
				names = append(names, disk.UniqueFCName(pv.Spec.FC))
			}
		}
	}
	return names
}
