package manifest

import (
	"slices"
	"strings"
)

// safeSysctls lists the safe sysctls of Kubernetes: each is namespaced and cannot harm
// the node or another pod.
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
	"net.ipv4.tcp_notsent_lowat",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.tcp_wmem",
}

// SysctlName returns a sysctl's name with dots between its parts, as CRI requires. If the
// separators are slashes, a dot is part of a name: "net/ipv4/conf/eth0.1/mtu".
func SysctlName(name string) string {
	if at := strings.IndexAny(name, "./"); at < 0 || name[at] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

// SysctlNamespace returns the Linux namespace of a sysctl, "ipc" or "net"; "" if it is not
// namespaced. The name may end in * and then stands for all names with that prefix.
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

// IsSysctlAllowed reports whether a pod may set a sysctl. The sysctl must be safe, or must match a
// name in allowedUnsafe. A name that ends in * matches all names with that prefix.
func IsSysctlAllowed(name string, allowedUnsafe []string) bool {
	name = SysctlName(name)
	return slices.Contains(safeSysctls, name) || slices.ContainsFunc(allowedUnsafe, func(u string) bool {
		u = SysctlName(u)
		prefix, all := strings.CutSuffix(u, "*")
		return u == name || all && strings.HasPrefix(name, prefix)
	})
}
