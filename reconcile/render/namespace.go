package render

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// IDsPerPod is the number of user and group IDs of a pod with a user namespace. The first host ID
// of a pod is a multiple of IDsPerPod.
const IDsPerPod = 65536

// namespaces returns the namespaces of a container. They are the namespaces of its pod, except that
// an ephemeral container with a target joins the process namespace of the target.
func (in *ContainerInput) namespaces() *cri.NamespaceOption {
	o := namespaces(&in.Pod.Object.Spec, in.FirstUserID)
	if in.TargetID != "" && o.Pid == cri.NamespaceMode_CONTAINER {
		o.Pid, o.TargetId = cri.NamespaceMode_TARGET, in.TargetID
	}
	return o
}

// namespaces returns the namespace options that a pod's sandbox and its containers share. ids is
// the first host ID of the user namespace.
func namespaces(spec *v1.PodSpec, ids uint32) *cri.NamespaceOption {
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

func idMappings(ids uint32) []*cri.IDMapping {
	return []*cri.IDMapping{{HostId: ids, ContainerId: 0, Length: IDsPerPod}}
}

// checkHostIDs returns an error if a pod with a user namespace has no host IDs. Without them, root
// in the pod would be root on the host.
func checkHostIDs(spec *v1.PodSpec, ids uint32) error {
	if manifest.HasUserNamespace(spec) && ids < IDsPerPod {
		return errors.New("hostUsers is false, but podd has allocated no host user IDs to the pod")
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
