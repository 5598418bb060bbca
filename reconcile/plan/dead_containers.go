package plan

import (
	"cmp"
	"slices"
	"time"

	"podd/runtime"
)

// A DeadContainerPolicy decides how many exited containers of a pod remain in the runtime. The
// newest exited container of each name always remains, because its log and its last state are
// shown. The zero value keeps only that container.
type DeadContainerPolicy struct {
	// MinAge is the minimum age of a container that is removed. As in the kubelet, the age is
	// counted from the creation of the container, and younger containers do not count towards the
	// maximum.
	MinAge time.Duration
	// Extra is the maximum number of exited containers of each name that remain in addition to the
	// newest; negative means that there is no maximum.
	Extra int
}

// RetainsMore reports whether the policy keeps more than the newest exited container of each name.
func (p DeadContainerPolicy) RetainsMore() bool { return p.MinAge > 0 || p.Extra != 0 }

// excess returns the containers to remove. deadContainers contains the exited containers of one
// name. nextExcess is the time at which another container may become old enough to be removed; zero
// if there is none.
func (p DeadContainerPolicy) excess(deadContainers []*runtime.Container, now time.Time) (remove []*runtime.Container, nextExcess time.Time) {
	if p.Extra < 0 || len(deadContainers) <= p.Extra+1 {
		return nil, time.Time{}
	}
	newestFirst := slices.SortedStableFunc(slices.Values(deadContainers), func(a, b *runtime.Container) int { return cmp.Compare(b.Attempt, a.Attempt) })
	oldCount := 0
	for i, c := range newestFirst {
		if wait := p.MinAge - age(c, now); wait > 0 {
			if at := now.Add(wait); nextExcess.IsZero() || at.Before(nextExcess) {
				nextExcess = at
			}
			continue
		}
		if oldCount++; oldCount > p.Extra+1 && i > 0 {
			remove = append(remove, c)
		}
	}
	return remove, nextExcess
}

// age returns the time since the creation of c by the wall clock; 0 if the clock was set back in
// the meantime.
func age(c *runtime.Container, now time.Time) time.Duration {
	return max(now.Sub(c.CreatedAt), 0)
}

// removeDead removes the exited containers of the current incarnation that the policy does not
// keep.
func (f *facts) removeDead(d *Decision) {
	byName := map[string][]*runtime.Container{}
	var names []string
	for i := range f.current.Containers {
		c := &f.current.Containers[i]
		if !f.isDead(c) {
			continue
		}
		if byName[c.Name] == nil {
			names = append(names, c.Name)
		}
		byName[c.Name] = append(byName[c.Name], c)
	}
	for _, name := range names {
		remove, nextExcess := f.in.Node.DeadContainers.excess(byName[name], f.in.Now)
		for _, c := range slices.Backward(remove) {
			f.addCleanup(d, RemoveContainer{Container: c.Name, ID: c.ID})
		}
		d.wakeAt(nextExcess)
	}
}

// isDead reports whether c has exited, or was created by a start that was superseded by a later
// attempt.
func (f *facts) isDead(c *runtime.Container) bool {
	return c.State == runtime.Exited || c.State == runtime.ExitCodeUnknown || c.State == runtime.Created && c.Attempt+1 < f.attemptOf(c.Name)
}
