package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sysctls are the settings in /proc/sys that a kubelet changes. fixedPaths are paths that a
// kubelet creates regardless of its configuration. In fixedPaths, each directory comes before the
// paths below the directory.
var (
	sysctls    = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}
	fixedPaths = []string{
		"/var/lib/kubelet", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins/kubelet.sock", "/var/log/containers",
		"/usr/libexec/kubernetes", "/usr/libexec/kubernetes/kubelet-plugins", "/usr/libexec/kubernetes/kubelet-plugins/volume", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
	}
)

// SaveHost records the state of the host before a kubelet changes it. The returned function
// restores the state, and removes the symlinks to logs below dir.
func SaveHost(dir string) (restore func()) {
	values, missingPaths := map[string][]byte{}, []string{}
	for _, t := range sysctls {
		path := "/proc/sys/" + t
		if value, err := os.ReadFile(path); err == nil {
			values[path] = value
		}
	}
	for _, path := range fixedPaths {
		if _, err := os.Lstat(path); err != nil {
			missingPaths = append(missingPaths, path)
		}
	}
	return func() {
		for path, value := range values {
			_ = os.WriteFile(path, value, 0o644)
		}
		links, _ := filepath.Glob("/var/log/containers/*.log")
		for _, l := range links {
			if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, dir) {
				_ = os.Remove(l)
			}
		}
		for i := len(missingPaths) - 1; i >= 0; i-- {
			_ = os.Remove(missingPaths[i]) // the error is ignored, because another process may use the path now
		}
	}
}

// containerdSocket is the only socket at which a kubelet's cAdvisor tries to connect to containerd.
const containerdSocket = "/run/containerd/containerd.sock"

// LinkContainerd creates a symlink to socket at containerdSocket, so that a kubelet's cAdvisor uses
// the containerd that serves socket. The returned function removes the symlink. LinkContainerd
// returns an error if containerdSocket exists, because the host then has a containerd.
func LinkContainerd(socket string) (remove func(), err error) {
	if err := os.MkdirAll(filepath.Dir(containerdSocket), 0o755); err != nil {
		return nil, err
	}
	if err := os.Symlink(socket, containerdSocket); err != nil {
		return nil, fmt.Errorf("creating a link to the socket of the stack's containerd: %w; stop the containerd of the host", err)
	}
	return func() { _ = os.Remove(containerdSocket) }, nil
}
