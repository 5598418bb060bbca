package render

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestSysctls checks which default sysctls are set in a pod, and that the pod's own sysctls take
// precedence.
func TestSysctls(t *testing.T) {
	const port, domain, message, user = "net.core.somaxconn", "kernel.domainname", "kernel.msgmax", "user.max_net_namespaces"
	n := Node{DefaultSysctls: map[string]string{port: "1", domain: "2", message: "3", "fs.mqueue.msg_max": "4", user: "5", "kernel.pid_max": "6"}}
	sc := &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "net/core/somaxconn", Value: "9"}, {Name: "net.ipv4.ip_forward", Value: "8"}}}
	for name, tt := range map[string]struct {
		spec v1.PodSpec
		want map[string]string
	}{
		"own namespaces":             {v1.PodSpec{HostUsers: new(false)}, map[string]string{port: "1", domain: "2", message: "3", "fs.mqueue.msg_max": "4", user: "5"}},
		"user namespace of the host": {v1.PodSpec{}, map[string]string{port: "1", domain: "2", message: "3", "fs.mqueue.msg_max": "4"}},
		"network of the host":        {v1.PodSpec{HostNetwork: true}, map[string]string{message: "3", "fs.mqueue.msg_max": "4"}},
		"IPC of the host":            {v1.PodSpec{HostIPC: true}, map[string]string{port: "1", domain: "2"}},
		"sysctls of the pod":         {v1.PodSpec{HostIPC: true, SecurityContext: sc}, map[string]string{port: "9", "net.ipv4.ip_forward": "8", domain: "2"}},
	} {
		if got := sysctls(n, &v1.Pod{Spec: tt.spec}); !maps.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
