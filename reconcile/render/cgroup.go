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
	parts := strings.FieldsFunc(n.CgroupRoot, func(r rune) bool { return r == '/' })
	parts = append(parts, "kubepods")
	switch manifest.QoS(p.Spec) {
	case v1.PodQOSBurstable:
		parts = append(parts, "burstable")
	case v1.PodQOSBestEffort:
		parts = append(parts, "besteffort")
	}
	parts = append(parts, "pod"+string(p.UID))
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
