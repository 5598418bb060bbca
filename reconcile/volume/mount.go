package volume

import (
	"slices"
	"strings"

	"podd/reconcile/volume/mounts"
	"podd/reconcile/volume/subpath"
)

// mountsBelow returns the mounts at or below the path under, which is relative to Root. See
// mounts.Below.
func (d Dir) mountsBelow(under string) ([]mounts.Mount, error) { return mounts.Below(d.Root, under) }

// isPoddMount reports whether a mount has the type and the path of a mount that podd creates. An
// example is a whole tmpfs or hugetlbfs at <uid>/volumes/kubernetes.io~empty-dir/<volume>.
func isPoddMount(m mounts.Mount) bool {
	parts := strings.Split(m.Rel, "/")
	switch {
	case len(parts) == 4 && parts[1] == volumesDir && slices.Contains(memoryPlugins, parts[2]):
		return m.IsFilesystemRoot && (m.Type == "tmpfs" || m.Type == "hugetlbfs" && parts[2] == emptyDirPlugin)
	case len(parts) == 4 && parts[1] == volumesDir && parts[2] == nfsPlugin:
		return m.IsNFS()
	case len(parts) == 4 && parts[1] == volumesDir && (parts[2] == iscsiPlugin || parts[2] == fcPlugin):
		return m.IsFilesystemRoot
	}
	return len(parts) == 5 && parts[1] == subpath.DirName
}

// memoryPlugins are the plugins of memory-backed volumes, by the names of their directories.
var memoryPlugins = []string{emptyDirPlugin, secretType.plugin, downwardAPIType.plugin, projectedType.plugin}
