package cgroup

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// classPaths returns the parent cgroups of the pods of each QoS class, for both drivers.
// root is the parent of kubepods; "" is the top of the hierarchy.
func classPaths(root string) []string {
	parts := strings.FieldsFunc(root, func(r rune) bool { return r == '/' })
	var dirs []string
	for _, class := range []string{"", "burstable", "besteffort"} {
		at := append(slices.Clone(parts), "kubepods")
		if class != "" {
			at = append(at, class)
		}
		dirs = append(dirs, "/"+path.Join(at...))
		for i := range at { // in the name of a slice, a dash separates levels
			at[i] = strings.ReplaceAll(at[i], "-", "_")
		}
		if dir, err := slicePath(strings.Join(at, "-") + slice); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// podPathInClass returns the path of a pod's cgroup in dir, one of the classPaths, and
// the driver of dir.
func podPathInClass(dir string, uid types.UID) (at, driver string) {
	if name, ok := strings.CutSuffix(path.Base(dir), slice); ok {
		return path.Join(dir, name+"-pod"+strings.ReplaceAll(string(uid), "-", "_")+slice), driverSystemd
	}
	return path.Join(dir, "pod"+string(uid)), driverCgroupfs
}
