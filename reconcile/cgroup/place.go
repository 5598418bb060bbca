package cgroup

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Places returns the possible paths of a pod's cgroup below the mount point of a
// hierarchy, for each QoS class and driver. At most one of them exists. root is the
// parent of kubepods; "" is the top of the hierarchy.
func Places(root string, uid types.UID) []string {
	var all []string
	for _, class := range classPaths(root) {
		at, _ := podPathInClass(class, uid)
		all = append(all, at)
	}
	return all
}

// Groups returns the possible paths of the cgroup of all pods, and those of the cgroups
// of the QoS classes Burstable and BestEffort. root is as for Places.
func Groups(root string) (pods, inner []string) {
	for _, class := range classPaths(root) {
		if base := path.Base(class); base == "kubepods" || strings.HasSuffix(base, "kubepods"+slice) {
			pods = append(pods, class)
		} else {
			inner = append(inner, class)
		}
	}
	return pods, inner
}
