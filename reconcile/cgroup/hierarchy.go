// Package cgroup creates the cgroups of pods and of QoS classes, sets and reads their limits,
// and measures their memory. It lists the pods that have a cgroup, removes the cgroups of
// deleted pods, and kills the processes of containers that the runtime cannot stop. The
// runtime manages the cgroups of containers.
//
//	cgroupfs   /kubepods[/burstable|/besteffort]/pod<uid>
//	systemd    kubepods-burstable-pod<uid, with _ for ->.slice, which is
//	           /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice
//
// A pod's cgroup exists in the v2 hierarchy and in every v1 hierarchy. The mount points of
// the hierarchies are read from the mount table. The kernel does not remove a cgroup that
// contains processes. RemovePod returns an error for such a cgroup, and lets its caller
// terminate the processes, because the runtime no longer lists their containers.
package cgroup

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// listMountPoints returns one mount point for each cgroup hierarchy of the host, v2 and v1.
func listMountPoints() ([]string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup mounts: %w", err)
	}
	return mountPoints(mounts), nil
}

// A Hierarchy is a mounted cgroup hierarchy.
type Hierarchy struct {
	Path        string   // mount point
	Controllers []string // controllers that are enabled in the hierarchy
	IsReadOnly  bool
	IsV2        bool
}

// Hierarchies returns the cgroup hierarchies of the host, v2 and v1.
func Hierarchies() ([]Hierarchy, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup mounts: %w", err)
	}
	var hierarchies []Hierarchy
	for _, m := range oneMountPerHierarchy(mounts) {
		h := newHierarchy(m)
		if m.FSType == "cgroup2" {
			text, err := os.ReadFile(path.Join(m.Mountpoint, "cgroup.controllers"))
			if err != nil {
				return nil, fmt.Errorf("reading the cgroup controllers: %w", err)
			}
			h.Controllers = strings.Fields(string(text))
		}
		hierarchies = append(hierarchies, h)
	}
	return hierarchies, nil
}

// newHierarchy returns the hierarchy of a mount. It sets Controllers only for a v1 hierarchy,
// because only the mount options of v1 contain the names of the controllers.
func newHierarchy(m *mountinfo.Info) Hierarchy {
	options := strings.Split(m.VFSOptions, ",")
	h := Hierarchy{Path: m.Mountpoint, IsReadOnly: slices.Contains(options, "ro") || slices.Contains(strings.Split(m.Options, ","), "ro"), IsV2: m.FSType == "cgroup2"}
	if m.FSType == "cgroup" {
		h.Controllers = slices.DeleteFunc(options, isMountOption)
	}
	return h
}

// isMountOption reports whether an option of a v1 hierarchy is not the name of a controller.
func isMountOption(option string) bool {
	return slices.Contains([]string{"rw", "ro", "xattr", "none", "clone_children", "noprefix", "cpuset_v2_mode", "favordynmods"}, option) || strings.Contains(option, "=")
}

// mountPoints returns one mount point of each hierarchy, sorted.
func mountPoints(mounts []*mountinfo.Info) []string {
	var points []string
	for _, m := range oneMountPerHierarchy(mounts) {
		points = append(points, m.Mountpoint)
	}
	slices.Sort(points)
	return points
}

// oneMountPerHierarchy returns one mount of each hierarchy. If a hierarchy has several mounts, it
// prefers mounts of the whole hierarchy. A mount of a subtree may be, for example, a bind mount
// into a chroot. If several mounts remain, it chooses the mount with the shortest path.
func oneMountPerHierarchy(mounts []*mountinfo.Info) []*mountinfo.Info {
	slices.SortStableFunc(mounts, func(a, b *mountinfo.Info) int {
		return cmp.Or(cmp.Compare(len(a.Root), len(b.Root)), cmp.Compare(len(a.Mountpoint), len(b.Mountpoint)))
	})
	type device struct{ major, minor int }
	visited := map[device]bool{}
	var selected []*mountinfo.Info
	for _, m := range mounts {
		if d := (device{m.Major, m.Minor}); !visited[d] {
			visited[d] = true
			selected = append(selected, m)
		}
	}
	return selected
}
