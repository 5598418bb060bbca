package render

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// CgroupParent names the pod's cgroup, the parent of its containers', as the
// cgroup driver wants it:
//
//	cgroupfs  /kubepods/burstable/pod<uid>
//	systemd   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _ for ->.slice
//
// Guaranteed pods are right under kubepods.
func CgroupParent(p *manifest.Pod, n Node) string {
	pod := "pod" + string(p.UID)
	switch manifest.QoS(p.Spec) {
	case v1.PodQOSBurstable:
		return cgroupName(n, "kubepods", "burstable", pod)
	case v1.PodQOSBestEffort:
		return cgroupName(n, "kubepods", "besteffort", pod)
	}
	return cgroupName(n, "kubepods", pod)
}

// cgroupName is the cgroup at a path below the root of pods.
func cgroupName(n Node, levels ...string) string {
	parts := append(strings.FieldsFunc(n.CgroupRoot, func(r rune) bool { return r == '/' }), levels...)
	if n.CgroupDriver == "systemd" {
		return slicePath(parts)
	}
	return "/" + path.Join(parts...)
}

// slicePath is the path of a systemd slice. In a slice's name a dash separates
// levels, so dashes inside of a level become underscores.
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
