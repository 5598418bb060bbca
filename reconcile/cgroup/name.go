package cgroup

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// The drivers, as runtimes name them. The zero Driver is Cgroupfs.
const (
	Cgroupfs = "cgroupfs"
	Systemd  = "systemd"
)

const slice = ".slice"

// podPath is the place in a hierarchy of the pod cgroup called parent, which
// must be that of the pod uid: nothing else may be removed for it.
func podPath(parent, driver string, uid types.UID) (string, error) {
	if !manifest.SafeUID(uid) {
		return "", fmt.Errorf("pod uid %q cannot be part of a cgroup name", uid)
	}
	at, err := place(parent, driver)
	if err != nil {
		return "", err
	}
	if got, ok := uidOf(path.Base(at)); !ok || got != uid {
		return "", fmt.Errorf("cgroup %q is not that of pod %s", parent, uid)
	}
	return at, nil
}

// place turns the cgroup parent that was given to the runtime into a path in a
// hierarchy.
func place(parent, driver string) (string, error) {
	if driver == Systemd {
		return slicePath(path.Base(parent))
	}
	if !path.IsAbs(parent) || path.Clean(parent) != parent || slices.Contains(strings.Split(parent, "/"), "..") {
		return "", fmt.Errorf("cgroup %q is not a clean absolute path", parent)
	}
	return parent, nil
}

// slicePath spells out the parents of a slice: "a-b.slice" lies in "a.slice"
// (systemd.slice(5)).
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

// uidOf reads a pod's UID off the last element of its cgroup's path.
func uidOf(base string) (types.UID, bool) {
	if name, ok := strings.CutSuffix(base, slice); ok {
		if i := strings.LastIndex(name, "-"); i >= 0 {
			name = name[i+1:]
		}
		base = strings.ReplaceAll(name, "_", "-")
	}
	uid, ok := strings.CutPrefix(base, "pod")
	return types.UID(uid), ok && manifest.SafeUID(types.UID(uid))
}
