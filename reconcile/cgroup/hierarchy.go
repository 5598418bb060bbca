// Package cgroup makes the cgroups of pods and of the classes they lie in, limits
// them, and removes what pods leave behind. The containers' own cgroups are
// the runtime's.
//
//	cgroupfs   /kubepods[/burstable|/besteffort]/pod<uid>
//	systemd    kubepods-burstable-pod<uid, with _ for ->.slice, which is
//	           /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice
//
// A pod's cgroup exists in every v1 hierarchy and in v2; where these are
// mounted is read from the mount table. A cgroup with processes in it stays, with
// a *BusyError; what the runtime has lost track of is ended by whoever removes.
package cgroup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moby/sys/mountinfo"
)

// hierarchies gives the mount point of every cgroup hierarchy of the machine:
// one for v2, one for each hierarchy of v1.
func hierarchies() ([]string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("looking for the cgroup mounts: %w", err)
	}
	return mountPoints(mounts), nil
}

// mountPoints picks one mount of each hierarchy: a whole one before a part,
// as bind mounts into a chroot are, and of equals the shortest path.
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
