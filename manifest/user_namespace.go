package manifest

import v1 "k8s.io/api/core/v1"

// HasUserNamespace reports whether a pod has its own user namespace (hostUsers: false).
func HasUserNamespace(spec *v1.PodSpec) bool {
	return spec.HostUsers != nil && !*spec.HostUsers
}
