package cgroup

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// Names of cgroup drivers, as used by runtimes. "" means driverCgroupfs.
const (
	driverCgroupfs = "cgroupfs"
	driverSystemd  = "systemd"
)

// sliceSuffix is the suffix of the name of a systemd slice.
const sliceSuffix = ".slice"

// podPath returns the path of a pod's cgroup below the mount point of a hierarchy. parent is
// the cgroup parent of the pod, as passed to the runtime. If parent is not the cgroup of the pod
// uid, podPath returns an error, because otherwise the caller would remove a different cgroup.
func podPath(parent, driver string, uid types.UID) (string, error) {
	if !manifest.IsSafeUID(uid) {
		return "", fmt.Errorf("pod uid %q cannot be part of a cgroup name", uid)
	}
	cgroupPath, err := hierarchyPath(parent, driver)
	if err != nil {
		return "", err
	}
	if actualUID, ok := uidFromName(path.Base(cgroupPath)); !ok || actualUID != uid {
		return "", fmt.Errorf("cgroup %q is not the cgroup of pod %s", parent, uid)
	}
	return cgroupPath, nil
}

// hierarchyPath returns the path of a cgroup below the mount point of a hierarchy. parent is the
// cgroup parent, as passed to the runtime: a path or, for driverSystemd, the path or the
// name of a slice.
func hierarchyPath(parent, driver string) (string, error) {
	if driver == driverSystemd {
		return slicePath(path.Base(parent))
	}
	if !path.IsAbs(parent) || path.Clean(parent) != parent || slices.Contains(strings.Split(parent, "/"), "..") {
		return "", fmt.Errorf("cgroup %q must be an absolute path without redundant elements, for example /pods", parent)
	}
	return parent, nil
}

// slicePath returns the path of a systemd slice. The path consists of the slice and all its
// parents. For example, the path of "a-b.slice" is "/a.slice/a-b.slice" (systemd.slice(5)).
func slicePath(name string) (string, error) {
	base, ok := strings.CutSuffix(name, sliceSuffix)
	if !ok || base == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q is not the name of a systemd slice", name)
	}
	slice, prefix := "/", ""
	for part := range strings.SplitSeq(base, "-") {
		if part == "" {
			return "", fmt.Errorf("%q is not the name of a systemd slice", name)
		}
		prefix += part
		slice = path.Join(slice, prefix+sliceSuffix)
		prefix += "-"
	}
	return slice, nil
}

// uidFromName returns the pod UID in base, the last element of the path of a pod cgroup.
// ok is false if base is not the name of a pod cgroup.
func uidFromName(base string) (uid types.UID, ok bool) {
	if name, ok := strings.CutSuffix(base, sliceSuffix); ok {
		if i := strings.LastIndex(name, "-"); i >= 0 {
			name = name[i+1:]
		}
		base = strings.ReplaceAll(name, "_", "-")
	}
	text, ok := strings.CutPrefix(base, "pod")
	uid = types.UID(text)
	return uid, ok && manifest.IsSafeUID(uid)
}
