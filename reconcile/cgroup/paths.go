package cgroup

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// PodPaths returns the possible paths of a pod's cgroup below the mount point of a
// hierarchy, one for each QoS class and driver. At most one of these cgroups exists. root
// is the parent of kubepods; "" is the top of the hierarchy.
func PodPaths(root string, uid types.UID) []string {
	var paths []string
	for _, class := range classPaths(root) {
		podDir, _ := podPathInClass(class, uid)
		paths = append(paths, podDir)
	}
	return paths
}

// QOSPaths returns the possible paths of three cgroups for each driver: kubepods, which contains
// all pods, and the cgroups of the QoS classes Burstable and BestEffort. root is the parent of
// kubepods; "" is the top of the hierarchy.
func QOSPaths(root string) (kubepods, classes []string) {
	for _, class := range classPaths(root) {
		if base := path.Base(class); base == "kubepods" || strings.HasSuffix(base, "kubepods"+sliceSuffix) {
			kubepods = append(kubepods, class)
		} else {
			classes = append(classes, class)
		}
	}
	return kubepods, classes
}

// AllPodsPaths returns the possible paths of kubepods, the cgroup that contains all pods, for each driver.
// The path for driver is the first, because after a change of the driver, a cgroup of the earlier driver
// can remain until the host is rebooted. driver is "systemd" or "cgroupfs"; any other value means cgroupfs.
// root is the parent of kubepods; "" is the top of the hierarchy.
func AllPodsPaths(root, driver string) []string {
	paths, _ := QOSPaths(root)
	if driver == driverSystemd {
		slices.Reverse(paths)
	}
	return paths
}
