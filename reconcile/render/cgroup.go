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
// The cgroups of Guaranteed pods are directly below kubepods. As in the kubelet, the path is "" if
// pods have no cgroups. It is not CgroupRoot in that case, so that the runtime uses its default
// parent.
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
	elements := append(strings.FieldsFunc(n.CgroupRoot, func(r rune) bool { return r == '/' }), levels...)
	if n.CgroupDriver == "systemd" {
		return slicePath(elements)
	}
	return "/" + path.Join(elements...)
}

// slicePath returns the path of the systemd slice with these levels. In the name of a slice, a dash
// separates levels. Therefore slicePath replaces dashes within a level by underscores.
func slicePath(levels []string) string {
	name, dir := "", ""
	for _, level := range levels {
		if name != "" {
			name += "-"
		}
		name += strings.ReplaceAll(level, "-", "_")
		dir += "/" + name + ".slice"
	}
	return dir
}
