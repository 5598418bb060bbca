package cgroup

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// classPaths returns the paths of the cgroups that contain the pods of each QoS class. It returns
// two paths for each class, one for the driver cgroupfs and one for systemd. root is the parent of
// kubepods; "" is the top of the hierarchy.
func classPaths(root string) []string {
	parts := strings.FieldsFunc(root, func(r rune) bool { return r == '/' })
	var dirs []string
	for _, class := range []string{"", "burstable", "besteffort"} {
		names := append(slices.Clone(parts), "kubepods")
		if class != "" {
			names = append(names, class)
		}
		dirs = append(dirs, "/"+path.Join(names...))
		for i := range names { // replace dashes, because a dash in the name of a slice separates levels
			names[i] = strings.ReplaceAll(names[i], "-", "_")
		}
		if dir, err := slicePath(strings.Join(names, "-") + sliceSuffix); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// podPathInClass returns the path of a pod's cgroup in class, and the driver that uses this
// path. class is one of the results of classPaths.
func podPathInClass(class string, uid types.UID) (podDir, driver string) {
	if name, ok := strings.CutSuffix(path.Base(class), sliceSuffix); ok {
		return path.Join(class, name+"-pod"+strings.ReplaceAll(string(uid), "-", "_")+sliceSuffix), driverSystemd
	}
	return path.Join(class, "pod"+string(uid)), driverCgroupfs
}
