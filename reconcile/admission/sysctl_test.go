package admission

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestSysctls checks which sysctls a pod may set, and the messages for podd's own pods and for pods
// of a cluster.
func TestSysctls(t *testing.T) {
	const notAllowed = "is not safe and not allowed on this node"
	own := v1.PodSpec{HostUsers: new(bool)}
	host := v1.PodSpec{HostNetwork: true, HostIPC: true}
	for name, c := range map[string]struct {
		sysctl, kernel string
		allowed        []string
		spec           v1.PodSpec
		want, cluster  string
	}{
		"safe on every kernel":              {sysctl: "net.ipv4.tcp_syncookies"},
		"safe, with slashes":                {sysctl: "net/ipv4/tcp_syncookies"},
		"safe since this kernel":            {sysctl: "net.ipv4.tcp_rmem", kernel: "4.15.0-20-generic"},
		"safe, newer kernel":                {sysctl: "net.ipv4.tcp_notsent_lowat", kernel: "6.1.0"},
		"not namespaced on an older kernel": {sysctl: "net.ipv4.tcp_rmem", kernel: "4.14.336", want: notAllowed, cluster: `forbidden sysctl: "net.ipv4.tcp_rmem" not allowlisted`},
		"unknown kernel":                    {sysctl: "net.ipv4.tcp_fin_timeout", want: notAllowed, cluster: "not allowlisted"},
		"older kernel, allowed":             {sysctl: "net.ipv4.tcp_rmem", kernel: "4.14", allowed: []string{"net.ipv4.*"}},
		"unsafe":                            {sysctl: "kernel.domainname", kernel: "6.1", want: notAllowed, cluster: "not allowlisted"},
		"domain name, allowed":              {sysctl: "kernel.domainname", allowed: []string{"kernel.domainname"}},
		"domain name of the host":           {sysctl: "kernel.domainname", allowed: []string{"kernel.domainname"}, spec: host, want: "would change the node, because hostNetwork is true", cluster: `forbidden sysctl: "kernel.domainname" not allowed with host UTS enabled`},
		"unsafe in a user namespace":        {sysctl: "user.max_net_namespaces", spec: own, want: notAllowed, cluster: "not allowlisted"},
		"user namespace, allowed":           {sysctl: "user.max_net_namespaces", allowed: []string{"user.*"}, spec: own},
		"user namespace of the host":        {sysctl: "user.max_net_namespaces", allowed: []string{"user.*"}, want: "because hostUsers is not false", cluster: `forbidden sysctl: "user.max_net_namespaces" not allowed with host User enabled`},
		"network namespace of the host":     {sysctl: "net.core.somaxconn", allowed: []string{"net.core.somaxconn"}, spec: host, want: "because hostNetwork is true", cluster: "not allowed with host Net enabled"},
		"safe, IPC namespace of the host":   {sysctl: "kernel.shm_rmid_forced", spec: host, want: "because hostIPC is true", cluster: "not allowed with host IPC enabled"},
		"no namespace":                      {sysctl: "vm.swappiness", want: notAllowed, cluster: "not allowlisted"},
		"name continues an allowed one":     {sysctl: "net.core.somaxconn2", allowed: []string{"net.core.somaxconn"}, want: notAllowed, cluster: "not allowlisted"},
		"unknown name of a pattern":         {sysctl: "kernel.shm_next_id", allowed: []string{"kernel.shm*"}},
		"unknown name, host namespace":      {sysctl: "kernel.shm_next_id", allowed: []string{"kernel.shm*"}, spec: host, want: "because hostIPC is true", cluster: `"kernel.shm_next_id" not allowed with host IPC enabled`},
		"forbidden, with slashes":           {sysctl: "net/core/somaxconn", want: "sysctl net/core/somaxconn " + notAllowed, cluster: `forbidden sysctl: "net.core.somaxconn" not allowlisted`},
		"pattern of another name":           {sysctl: "net.core.somaxconn", allowed: []string{"net.ipv4.*", "net.core"}, want: notAllowed, cluster: "not allowlisted"},
		"pattern with slashes":              {sysctl: "net.core.somaxconn", allowed: []string{"net/core/*"}},
	} {
		f := Features{AllowedUnsafeSysctls: c.allowed, KernelRelease: c.kernel}
		pod := &v1.Pod{Spec: c.spec}
		pod.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: c.sysctl, Value: "1"}}}
		if got := f.checkSysctls(pod); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: pod of a file: got message %q, want one with %q", name, got, c.want)
		}
		if got := f.sysctlRejection(pod); (got == "") != (c.cluster == "") || !strings.Contains(got, c.cluster) {
			t.Errorf("%s: pod of a cluster: got message %q, want one with %q", name, got, c.cluster)
		}
	}
}
