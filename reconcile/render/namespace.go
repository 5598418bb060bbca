package render

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/runtime"
)

// namespaces returns the namespaces of a container. They are the namespaces of its pod, except that
// an ephemeral container with a target joins the process namespace of the target.
func (in *ContainerInput) namespaces() *cri.NamespaceOption {
	o := namespaces(&in.Pod.Object.Spec, in.UserIDs)
	if in.TargetID != "" && o.Pid == cri.NamespaceMode_CONTAINER {
		o.Pid, o.TargetId = cri.NamespaceMode_TARGET, in.TargetID
	}
	return o
}

// namespaces returns the namespace options that a pod's sandbox and its containers share. ids are
// the host IDs of the user namespace.
func namespaces(spec *v1.PodSpec, ids runtime.IDRange) *cri.NamespaceOption {
	o := &cri.NamespaceOption{
		Network:       namespaceMode(spec.HostNetwork),
		Ipc:           namespaceMode(spec.HostIPC),
		Pid:           pidMode(spec),
		UsernsOptions: &cri.UserNamespace{Mode: cri.NamespaceMode_NODE},
	}
	if manifest.HasUserNamespace(spec) {
		o.UsernsOptions = &cri.UserNamespace{Mode: cri.NamespaceMode_POD, Uids: idMappings(ids), Gids: idMappings(ids)}
	}
	return o
}

func idMappings(ids runtime.IDRange) []*cri.IDMapping {
	return []*cri.IDMapping{{HostId: ids.First, ContainerId: 0, Length: ids.Length}}
}

// checkHostIDs returns an error if a pod with a user namespace has no host IDs, because root in the
// pod would then be root on the host.
func checkHostIDs(spec *v1.PodSpec, ids runtime.IDRange) error {
	if manifest.HasUserNamespace(spec) && !ids.IsValid() {
		return errors.New("hostUsers is false, but no range of user IDs of the host is free; remove other pods with hostUsers: false, or decrease userNamespaces.idsPerPod")
	}
	return nil
}

func namespaceMode(host bool) cri.NamespaceMode {
	if host {
		return cri.NamespaceMode_NODE
	}
	return cri.NamespaceMode_POD
}

// pidMode returns the mode of the process namespace. The process namespace is the only namespace
// that the containers of a pod do not share by default.
func pidMode(spec *v1.PodSpec) cri.NamespaceMode {
	switch {
	case spec.HostPID:
		return cri.NamespaceMode_NODE
	case spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace:
		return cri.NamespaceMode_POD
	}
	return cri.NamespaceMode_CONTAINER
}
