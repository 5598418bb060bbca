package host

import (
	"cmp"
	"os"
	goruntime "runtime"
	"strings"

	"github.com/moby/sys/userns"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/reconcile/node"
	"podd/runtime/bootid"
	"podd/server/kube"
)

// SystemInfo returns the nodeInfo of the node's status. If podd acts as a kubelet, the version of the
// kubelet is manifest.KubernetesVersion, because kubeadm and other programs compare versions.
// Otherwise it is the version of podd's Kubernetes API.
func SystemInfo(cfg *config.Node) v1.NodeSystemInfo {
	boot, _ := bootid.Get() // the Node has no boot ID if it cannot be read
	info := v1.NodeSystemInfo{
		MachineID:  cmp.Or(ReadFirstLine("/etc/machine-id"), ReadFirstLine("/var/lib/dbus/machine-id")),
		SystemUUID: cmp.Or(ReadFirstLine("/sys/class/dmi/id/product_uuid"), ReadFirstLine("/proc/device-tree/vm,uuid"), ReadFirstLine("/etc/machine-id")),
		BootID:     boot, OSImage: readOSImage("/etc/os-release"),
		KubeletVersion: manifest.KubernetesVersion + kube.VersionSuffix, OperatingSystem: goruntime.GOOS, Architecture: goruntime.GOARCH,
	}
	if cfg.ActsAsKubelet {
		info.KubeletVersion = manifest.KubernetesVersion
	}
	if swap, err := node.ReadMemInfo("SwapTotal"); err == nil && swap > 0 {
		info.Swap = &v1.NodeSwapStatus{Capacity: &swap}
	}
	if !cfg.HidesUserNamespace {
		info.RunningInUserNamespace = new(userns.RunningInUserNS())
	}
	info.KernelVersion = KernelRelease()
	return info
}

// KernelRelease returns the release of the running kernel, such as "6.1.0-13-amd64"; "" if it is
// unknown.
func KernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// ReadFirstLine returns the first line of a file without white space around it, or "" if the
// file cannot be read.
func ReadFirstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// readOSImage returns the PRETTY_NAME in a file in the format of os-release(5), or "Linux" if
// there is none.
func readOSImage(path string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); found {
			return strings.Trim(name, `"'`)
		}
	}
	return "Linux"
}
