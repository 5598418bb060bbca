package cgroup

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// The cgroup drivers, with the names that runtimes use. An empty driver means driverCgroupfs.
const (
	driverCgroupfs = "cgroupfs"
	driverSystemd  = "systemd"
)

const slice = ".slice"

// podPath returns the path in a hierarchy of the pod cgroup parent. It returns an error
// unless this is the cgroup of the pod uid, so that no other cgroup is removed.
func podPath(parent, driver string, uid types.UID) (string, error) {
	if !manifest.SafeUID(uid) {
		return "", fmt.Errorf("pod uid %q cannot be part of a cgroup name", uid)
	}
	at, err := resolve(parent, driver)
	if err != nil {
		return "", err
	}
	if got, ok := uidFromName(path.Base(at)); !ok || got != uid {
		return "", fmt.Errorf("cgroup %q is not the cgroup of pod %s", parent, uid)
	}
	return at, nil
}

// resolve returns the path in a hierarchy of a cgroup parent, as passed to the runtime.
func resolve(parent, driver string) (string, error) {
	if driver == driverSystemd {
		return slicePath(path.Base(parent))
	}
	if !path.IsAbs(parent) || path.Clean(parent) != parent || slices.Contains(strings.Split(parent, "/"), "..") {
		return "", fmt.Errorf("cgroup %q is not a clean absolute path", parent)
	}
	return parent, nil
}

// slicePath returns the path of a slice with all its parents: the parent of "a-b.slice"
// is "a.slice" (systemd.slice(5)).
func slicePath(name string) (string, error) {
	base, ok := strings.CutSuffix(name, slice)
	if !ok || base == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q is not the name of a slice", name)
	}
	at, prefix := "/", ""
	for part := range strings.SplitSeq(base, "-") {
		if part == "" {
			return "", fmt.Errorf("%q is not the name of a slice", name)
		}
		prefix += part
		at = path.Join(at, prefix+slice)
		prefix += "-"
	}
	return at, nil
}

// uidFromName returns the pod UID in base, the last element of the path of a pod cgroup.
// It returns false if base is not the name of a pod cgroup.
func uidFromName(base string) (types.UID, bool) {
	if name, ok := strings.CutSuffix(base, slice); ok {
		if i := strings.LastIndex(name, "-"); i >= 0 {
			name = name[i+1:]
		}
		base = strings.ReplaceAll(name, "_", "-")
	}
	uid, ok := strings.CutPrefix(base, "pod")
	return types.UID(uid), ok && manifest.SafeUID(types.UID(uid))
}
