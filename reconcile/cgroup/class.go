package cgroup

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// classes are the cgroups that pods of the three QoS classes lie in, for both
// drivers.
func classes(root string) []string {
	parts := strings.FieldsFunc(root, func(r rune) bool { return r == '/' })
	var dirs []string
	for _, class := range []string{"", "burstable", "besteffort"} {
		at := append(slices.Clone(parts), "kubepods")
		if class != "" {
			at = append(at, class)
		}
		dirs = append(dirs, "/"+path.Join(at...))
		for i := range at { // in a slice's name a dash stands between levels
			at[i] = strings.ReplaceAll(at[i], "-", "_")
		}
		if dir, err := slicePath(strings.Join(at, "-") + slice); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// inClass is the path of a pod's cgroup in one of the classes, with its driver.
func inClass(dir string, uid types.UID) (at, driver string) {
	if name, ok := strings.CutSuffix(path.Base(dir), slice); ok {
		return path.Join(dir, name+"-pod"+strings.ReplaceAll(string(uid), "-", "_")+slice), Systemd
	}
	return path.Join(dir, "pod"+string(uid)), Cgroupfs
}
