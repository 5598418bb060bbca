package kubelet

import (
	"os"
	"path/filepath"
	"strings"
)

// tunables are what a kubelet sets in /proc/sys, and elsewhere what it makes
// wherever it is told to be, what is in a directory behind it.
var (
	tunables  = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}
	elsewhere = []string{
		"/var/lib/kubelet", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins/kubelet.sock", "/var/log/containers",
		"/usr/libexec/kubernetes", "/usr/libexec/kubernetes/kubelet-plugins", "/usr/libexec/kubernetes/kubelet-plugins/volume", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
	}
)

// Remember sees how the machine is before a kubelet changes it; restore puts it
// back, without the links to logs below dir.
func Remember(dir string) (restore func()) {
	values, made := map[string][]byte{}, []string{}
	for _, t := range tunables {
		path := "/proc/sys/" + t
		if value, err := os.ReadFile(path); err == nil {
			values[path] = value
		}
	}
	for _, path := range elsewhere {
		if _, err := os.Lstat(path); err != nil {
			made = append(made, path)
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
		for i := len(made) - 1; i >= 0; i-- {
			_ = os.Remove(made[i]) // not when others use it by now
		}
	}
}
