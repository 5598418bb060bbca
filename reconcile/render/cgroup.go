package render

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// cgroupParent returns the path of the pod's cgroup, which contains the cgroups of its
// containers. The form of the path depends on the cgroup driver:
//
//	cgroupfs  /kubepods/burstable/pod<uid>
//	systemd   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _ for ->.slice
//
// The cgroups of Guaranteed pods are directly below kubepods. As in the kubelet, the path is "" if pods
// have no cgroups. It is then not CgroupRoot, and the runtime uses its default parent.
func cgroupParent(p *manifest.Pod, n Node) string {
	if n.WithoutPodCgroups {
		return ""
	}
	pod := "pod" + string(p.UID)
	switch manifest.QoS(p.Object) {
	case v1.PodQOSBurstable:
		return cgroupName(n, "kubepods", "burstable", pod)
	case v1.PodQOSBestEffort:
		return cgroupName(n, "kubepods", "besteffort", pod)
	}
	return cgroupName(n, "kubepods", pod)
}

// cgroupName returns the path of a cgroup below CgroupRoot, in the form of the cgroup
// driver. levels are the path elements.
func cgroupName(n Node, levels ...string) string {
	parts := append(strings.FieldsFunc(n.CgroupRoot, func(r rune) bool { return r == '/' }), levels...)
	if n.CgroupDriver == "systemd" {
		return slicePath(parts)
	}
	return "/" + path.Join(parts...)
}

// slicePath returns the path of a systemd slice. In the name of a slice a dash separates
// levels, so dashes within a level are replaced by underscores.
func slicePath(parts []string) string {
	name, dir := "", ""
	for _, part := range parts {
		if name != "" {
			name += "-"
		}
		name += strings.ReplaceAll(part, "-", "_")
		dir += "/" + name + ".slice"
	}
	return dir
}
