package render

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// IDsPerPod is how many users and groups a pod with a user namespace has; its
// first id on the node is a multiple of it.
const IDsPerPod = 65536

// namespaces are those of a container: its pod's, but for an ephemeral one that
// is to see what another runs.
func (in *ContainerInput) namespaces() *cri.NamespaceOption {
	o := namespaces(&in.Pod.Spec.Spec, in.UserIDs)
	if in.TargetID != "" && o.Pid == cri.NamespaceMode_CONTAINER {
		o.Pid, o.TargetId = cri.NamespaceMode_TARGET, in.TargetID
	}
	return o
}

// namespaces are the Linux namespaces of a pod's sandbox and of each of its
// containers; both are told the same. ids is the first of the node's ids that a
// user namespace has.
func namespaces(spec *v1.PodSpec, ids uint32) *cri.NamespaceOption {
	o := &cri.NamespaceOption{
		Network:       podOrNode(spec.HostNetwork),
		Ipc:           podOrNode(spec.HostIPC),
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

// checkIDs: mapped to the node's first ids, root would be the node's.
func checkIDs(spec *v1.PodSpec, ids uint32) error {
	if manifest.HasUserNamespace(spec) && ids < IDsPerPod {
		return errors.New("hostUsers: false: no ids of the node are known for the pod's users")
	}
	return nil
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
