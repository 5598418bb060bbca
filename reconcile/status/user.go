package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// containerUser returns u as it is represented in a container status; nil if u is nil (KEP-3619).
func containerUser(u *runtime.User) *v1.ContainerUser {
	if u == nil {
		return nil
	}
	return &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: u.UID, GID: u.GID, SupplementalGroups: slices.Clone(u.Groups)}}
}
