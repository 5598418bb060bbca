package admission

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/node/util/sysctl"

	"podd/manifest"
)

// safeSysctls maps the safe sysctls of Kubernetes to the version of Linux in which they became
// namespaced; "" means that every supported version has them. A safe sysctl cannot harm the node or
// another pod.
var safeSysctls = map[string]string{
	"kernel.shm_rmid_forced":              "",
	"net.ipv4.ip_local_port_range":        "",
	"net.ipv4.ip_local_reserved_ports":    "3.16",
	"net.ipv4.ip_unprivileged_port_start": "",
	"net.ipv4.ping_group_range":           "",
	"net.ipv4.tcp_fin_timeout":            "4.6",
	"net.ipv4.tcp_keepalive_intvl":        "4.5",
	"net.ipv4.tcp_keepalive_probes":       "4.5",
	"net.ipv4.tcp_keepalive_time":         "4.5",
	"net.ipv4.tcp_notsent_lowat":          "4.6",
	"net.ipv4.tcp_rmem":                   "4.15",
	"net.ipv4.tcp_slow_start_after_idle":  "4.15",
	"net.ipv4.tcp_syncookies":             "",
	"net.ipv4.tcp_wmem":                   "4.15",
}

// A forbiddenSysctl is a sysctl of a pod that the node does not allow.
type forbiddenSysctl struct {
	name string // as in the manifest
	// hostCause is the reason why the pod uses the host's namespace for the sysctl, such as
	// "hostIPC is true"; "" if the sysctl is neither safe nor allowed on this node.
	hostCause string
	namespace sysctl.Namespace
}

// checkSysctls implements requirement.describeUnmet.
func (f *Features) checkSysctls(pod *v1.Pod) string {
	switch s := f.firstForbiddenSysctl(pod); {
	case s == nil:
		return ""
	case s.hostCause != "":
		return fmt.Sprintf("sysctl %s would change the node, because %s; remove the sysctl or change this field", s.name, s.hostCause)
	default:
		return fmt.Sprintf("sysctl %s is not safe and not allowed on this node; remove it, or allow it with --allowed-unsafe-sysctls", s.name)
	}
}

// sysctlRejection returns the kubelet's message for a pod with a sysctl that the node does not
// allow; "" if the pod has no such sysctl. Unlike the kubelet, podd itself rejects sysctls in the
// host's UTS namespace. The kubelet expects the runtime to reject them.
func (f *Features) sysctlRejection(pod *v1.Pod) string {
	s := f.firstForbiddenSysctl(pod)
	if s == nil {
		return ""
	}
	name := sysctl.NormalizeName(s.name)
	if s.hostCause != "" {
		return fmt.Sprintf("forbidden sysctl: %q not allowed with host %s enabled", name, s.namespace)
	}
	return fmt.Sprintf("forbidden sysctl: %q not allowlisted", name)
}

// firstForbiddenSysctl returns the first sysctl of a pod that the node does not allow; nil if the
// node allows all of them.
func (f *Features) firstForbiddenSysctl(pod *v1.Pod) *forbiddenSysctl {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		ns, ok := f.allowSysctl(s.Name)
		if !ok {
			return &forbiddenSysctl{name: s.Name}
		}
		if cause := manifest.HostNamespaceCause(ns, &pod.Spec); cause != "" {
			return &forbiddenSysctl{s.Name, cause, ns}
		}
	}
	return nil
}

// allowSysctl reports whether pods may set a sysctl. This is the case if the sysctl is safe on this
// kernel, or matches AllowedUnsafeSysctls. allowSysctl also returns the namespace of the sysctl. If
// the sysctl matches a pattern, this is the namespace of the pattern. For example, kernel.shm*
// allows all sysctls with this prefix as sysctls of the IPC namespace.
func (f *Features) allowSysctl(name string) (sysctl.Namespace, bool) {
	name = sysctl.NormalizeName(name)
	if since, isSafe := safeSysctls[name]; isSafe && (since == "" || f.hasKernel(since)) {
		ns, _, _ := sysctl.GetNamespace(name)
		return ns, true
	}
	for _, pattern := range f.AllowedUnsafeSysctls {
		ns, allowedName, isPrefix := sysctl.GetNamespace(pattern)
		if allowedName == name || isPrefix && strings.HasPrefix(name, allowedName) {
			return ns, true
		}
	}
	return sysctl.UnknownNamespace, false
}

// hasKernel reports whether the node has this version of Linux or a later one.
func (f *Features) hasKernel(since string) bool {
	kernel, err := version.ParseGeneric(f.KernelRelease)
	return err == nil && kernel.AtLeast(version.MustParseGeneric(since))
}
