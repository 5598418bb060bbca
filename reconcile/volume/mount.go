package volume

import (
	"slices"
	"strings"

	"podd/reconcile/volume/mounts"
	"podd/reconcile/volume/subpath"
)

// mountsBelow returns the mounts at or below Root/under. See mounts.Below.
func (d Dir) mountsBelow(under string) ([]mounts.Mount, error) { return mounts.Below(d.Root, under) }

// isOurs reports whether the type and the path of a mount are those of mounts that podd
// creates, such as a whole tmpfs or hugetlbfs at
// <uid>/volumes/kubernetes.io~empty-dir/<volume>. at is
// the mount point relative to the pod's directory.
func isOurs(m mounts.Mount) (at string, ok bool) {
	parts := strings.Split(m.Rel, "/")
	at = strings.Join(parts[1:], "/")
	switch {
	case len(parts) == 4 && parts[1] == volumesDir && slices.Contains(memoryPlugins, parts[2]):
		return at, m.IsWhole && (m.Type == "tmpfs" || m.Type == "hugetlbfs" && parts[2] == emptyDirPlugin)
	case len(parts) == 4 && parts[1] == volumesDir && parts[2] == nfsPlugin:
		return at, m.IsNFS()
	case len(parts) == 5 && parts[1] == subpath.Dir:
		return at, true
	}
	return "", false
}

// memoryPlugins are the directories of memory-backed volumes.
var memoryPlugins = []string{emptyDirPlugin, secret.plugin, downwardAPI.plugin, projected.plugin}
