package render

import (
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// namespaces are the Linux namespaces of a pod's sandbox and of each of its
// containers; both are told the same. The user namespace is the host's.
func namespaces(spec *v1.PodSpec) *cri.NamespaceOption {
	return &cri.NamespaceOption{
		Network: podOrNode(spec.HostNetwork),
		Ipc:     podOrNode(spec.HostIPC),
		Pid:     pidMode(spec),
		UsernsOptions: &cri.UserNamespace{
			Mode: cri.NamespaceMode_NODE,
		},
	}
}

func podOrNode(host bool) cri.NamespaceMode {
	if host {
		return cri.NamespaceMode_NODE
	}
	return cri.NamespaceMode_POD
}

// pidMode is the one namespace that each container has to itself by default.
func pidMode(spec *v1.PodSpec) cri.NamespaceMode {
	switch {
	case spec.HostPID:
		return cri.NamespaceMode_NODE
	case spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace:
		return cri.NamespaceMode_POD
	}
	return cri.NamespaceMode_CONTAINER
}
