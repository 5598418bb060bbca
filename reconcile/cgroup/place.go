package cgroup

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Places are the paths, below the mount of a hierarchy, where the cgroup of a pod
// may be: whatever its class and the driver. There is one of them. root is the
// cgroup that kubepods lies in; "" is the top.
func Places(root string, uid types.UID) []string {
	var all []string
	for _, class := range classes(root) {
		at, _ := inClass(class, uid)
		all = append(all, at)
	}
	return all
}

// Groups are the paths where the cgroup of all pods may be, and those where the
// ones of classes may.
func Groups(root string) (pods, inner []string) {
	for _, class := range classes(root) {
		if base := path.Base(class); base == "kubepods" || strings.HasSuffix(base, "kubepods"+slice) {
			pods = append(pods, class)
		} else {
			inner = append(inner, class)
		}
	}
	return pods, inner
}
