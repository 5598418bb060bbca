// Package cgroup creates the cgroups of pods and of QoS classes, sets their limits,
// measures their memory, and removes those of deleted pods. The runtime manages the
// cgroups of containers.
//
//	cgroupfs   /kubepods[/burstable|/besteffort]/pod<uid>
//	systemd    kubepods-burstable-pod<uid, with _ for ->.slice, which is
//	           /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice
//
// A pod's cgroup exists in the v2 hierarchy and in every v1 hierarchy. The mount points of
// the hierarchies are read from the mount table. The kernel does not remove a cgroup that
// contains processes. RemovePod reports such a cgroup as a *BusyError, and lets its caller
// terminate the processes, because the runtime no longer lists their containers.
package cgroup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moby/sys/mountinfo"
)

// listHierarchies returns one mount point for each cgroup hierarchy of the host, v2 and v1.
func listHierarchies() ([]string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup mounts: %w", err)
	}
	return mountPoints(mounts), nil
}

// mountPoints returns one mount point of each hierarchy. If a hierarchy has several mounts,
// mountPoints prefers a mount of the whole hierarchy to a mount of a subtree, such as a bind
// mount into a chroot. If several mounts are left, mountPoints chooses the shortest path.
func mountPoints(mounts []*mountinfo.Info) []string {
	slices.SortStableFunc(mounts, func(a, b *mountinfo.Info) int {
		return cmp.Or(cmp.Compare(len(a.Root), len(b.Root)), cmp.Compare(len(a.Mountpoint), len(b.Mountpoint)))
	})
	type device struct{ major, minor int }
	seen := map[device]bool{}
	var points []string
	for _, m := range mounts {
		if d := (device{m.Major, m.Minor}); !seen[d] {
			seen[d] = true
			points = append(points, m.Mountpoint)
		}
	}
	slices.Sort(points)
	return points
}
