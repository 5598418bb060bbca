package manifest

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// safeSysctls are those of Kubernetes 1.34: each belongs to its pod alone, and
// cannot harm the node or another pod.
var safeSysctls = []string{
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.ip_local_reserved_ports",
	"net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ping_group_range",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.tcp_wmem",
}

// SysctlName is a sysctl's name with dots between its parts, as CRI has it. Who
// writes slashes writes a dot within a part as one: "net/ipv4/conf/eth0.1/mtu".
func SysctlName(name string) string {
	if at := strings.IndexAny(name, "./"); at < 0 || name[at] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

// SysctlNamespace is the Linux namespace that a sysctl belongs to, "ipc" or
// "net"; "" is the whole machine. The name may end in *, for all that begin so.
func SysctlNamespace(name string) string {
	name = SysctlName(name)
	for _, prefix := range []string{"kernel.shm", "kernel.msg", "fs.mqueue."} {
		if strings.HasPrefix(name, prefix) {
			return "ipc"
		}
	}
	switch {
	case name == "kernel.sem":
		return "ipc"
	case strings.HasPrefix(name, "net."):
		return "net"
	}
	return ""
}

// SysctlAllowed says that a pod may set a sysctl: it is safe, or is one of
// unsafe, where a name may end in *.
func SysctlAllowed(name string, unsafe []string) bool {
	name = SysctlName(name)
	return slices.Contains(safeSysctls, name) || slices.ContainsFunc(unsafe, func(u string) bool {
		u = SysctlName(u)
		prefix, all := strings.CutSuffix(u, "*")
		return u == name || all && strings.HasPrefix(name, prefix)
	})
}

// ofHost names what takes a pod out of a sysctl's namespace, "" when nothing
// does: setting it would set the node's.
func ofHost(name string, spec *v1.PodSpec) string {
	switch ns := SysctlNamespace(name); {
	case ns == "net" && spec.HostNetwork:
		return "hostNetwork"
	case ns == "ipc" && spec.HostIPC:
		return "hostIPC"
	}
	return ""
}
