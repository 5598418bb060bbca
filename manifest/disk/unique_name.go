package disk

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// UniqueISCSIName returns the name that a volume of type iscsi has in the status of a Node. The
// attach-detach controller computes the same name (GetVolumeName in pkg/volume/iscsi).
func UniqueISCSIName(s *v1.ISCSIPersistentVolumeSource) v1.UniqueVolumeName {
	return v1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/iscsi/%s:%s:%d", s.TargetPortal, s.IQN, s.Lun))
}

// UniqueFCName returns the name that a volume of type fc has in the status of a Node. The attach-detach
// controller computes the same name (GetVolumeName in pkg/volume/fc).
func UniqueFCName(s *v1.FCVolumeSource) v1.UniqueVolumeName {
	if len(s.TargetWWNs) > 0 && s.Lun != nil {
		return v1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/fc/%v:%d", s.TargetWWNs, *s.Lun))
	}
	return v1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/fc/%v", s.WWIDs))
}
