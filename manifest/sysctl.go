package manifest

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"
)

// HostNamespaceCause returns why a pod uses the host's namespace ns, such as "hostIPC is true"; "" if
// the pod has its own namespace ns. A sysctl of a pod in a namespace of the host would change the
// node.
func HostNamespaceCause(ns sysctl.Namespace, spec *v1.PodSpec) string {
	switch {
	case ns == sysctl.NetNamespace && spec.HostNetwork:
		return "hostNetwork is true"
	case ns == sysctl.UTSNamespace && spec.HostNetwork: // a pod on the host network also uses the host's UTS namespace
		return "hostNetwork is true"
	case ns == sysctl.IPCNamespace && spec.HostIPC:
		return "hostIPC is true"
	case ns == sysctl.UserNamespace && !HasUserNamespace(spec):
		return "hostUsers is not false"
	}
	return ""
}
