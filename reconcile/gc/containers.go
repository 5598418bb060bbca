package gc

import (
	"cmp"
	"slices"
	"time"

	"podd/manifest/order"

	"k8s.io/apimachinery/pkg/types"
)

// A DeadContainer is a container on the node that does not run: it has exited, or was created and not
// started.
type DeadContainer struct {
	ID        string
	PodUID    types.UID
	Name      string // name of the container in the manifest
	Attempt   uint32
	CreatedAt time.Time
	// IsNeeded reports whether podd needs the container, so that it must not be removed.
	IsNeeded bool
}

// A ContainerPolicy limits the number of dead containers of all pods together.
type ContainerPolicy struct {
	// Max is the maximum number of dead containers; negative means that there is no maximum.
	Max int
	// MinAge is the minimum age of a container that is removed.
	MinAge time.Duration
}

// A containerName identifies the containers of one name in one pod.
type containerName struct {
	uid  types.UID
	name string
}

// Excess returns the containers to remove, in order. It does not modify containers.
func (p ContainerPolicy) Excess(containers []DeadContainer, now time.Time) (remove []DeadContainer) {
	remaining := slices.DeleteFunc(slices.Clone(containers), func(c DeadContainer) bool { return max(now.Sub(c.CreatedAt), 0) < p.MinAge })
	if p.Max < 0 || len(remaining) <= p.Max {
		return nil
	}
	order.Slice(remaining, compareAge)
	counts := map[containerName]int{}
	for _, c := range remaining {
		counts[c.fullName()]++
	}
	removeIf := func(isExcess func(DeadContainer) bool) {
		remaining = slices.DeleteFunc(remaining, func(c DeadContainer) bool {
			if c.IsNeeded || !isExcess(c) {
				return false
			}
			counts[c.fullName()]--
			remove = append(remove, c)
			return true
		})
	}
	share, total := max(p.Max/len(counts), 1), len(remaining)
	removeIf(func(c DeadContainer) bool { return counts[c.fullName()] > share })
	removeIf(func(DeadContainer) bool { return total-len(remove) > p.Max })
	return remove
}

// fullName returns the name of c with the UID of its pod.
func (c *DeadContainer) fullName() containerName { return containerName{c.PodUID, c.Name} }

// compareAge compares containers so that the oldest is first.
func compareAge(a, b DeadContainer) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.ID, b.ID))
}
