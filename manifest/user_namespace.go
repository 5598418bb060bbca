package manifest

import v1 "k8s.io/api/core/v1"

// HasUserNamespace says that a pod's users are not the node's: its root is an
// ordinary user outside.
func HasUserNamespace(spec *v1.PodSpec) bool {
	return spec.HostUsers != nil && !*spec.HostUsers
}
