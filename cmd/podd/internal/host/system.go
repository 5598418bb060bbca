package host

import (
	"cmp"
	"os"
	goruntime "runtime"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/server/kube"
)

// KubeletVersion is the version of the kubelet that podd replaces.
const KubeletVersion = "v1.34.4"

// SystemInfo returns the properties of the node. For a cluster, or if podd is called as
// kubelet, KubeletVersion is that of the replaced kubelet, because kubeadm and others
// compare versions.
func SystemInfo(asKubelet bool) v1.NodeSystemInfo {
	info := v1.NodeSystemInfo{
		MachineID:  cmp.Or(FirstLine("/etc/machine-id"), FirstLine("/var/lib/dbus/machine-id")),
		SystemUUID: cmp.Or(FirstLine("/sys/class/dmi/id/product_uuid"), FirstLine("/proc/device-tree/vm,uuid"), FirstLine("/etc/machine-id")),
		BootID:     FirstLine("/proc/sys/kernel/random/boot_id"), OSImage: osImage("/etc/os-release"),
		KubeletVersion: kube.GitVersion, OperatingSystem: goruntime.GOOS, Architecture: goruntime.GOARCH,
	}
	if asKubelet {
		info.KubeletVersion = KubeletVersion
	}
	if swap, err := MemInfo("/proc/meminfo", "SwapTotal"); err == nil && swap > 0 {
		info.Swap = &v1.NodeSwapStatus{Capacity: &swap}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		info.KernelVersion = unix.ByteSliceToString(u.Release[:])
	}
	return info
}

// FirstLine returns the first line of a file, or "" if it cannot be read.
func FirstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// osImage returns PRETTY_NAME of an os-release(5) file.
func osImage(path string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); found {
			return strings.Trim(name, `"'`)
		}
	}
	return "Linux"
}
