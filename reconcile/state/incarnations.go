package state

import (
	"slices"
	"time"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/status"
	"podd/runtime"
)

// withContainer returns observed with container c, which replaces the container with the same ID or
// is added to its sandbox. If the recorded state is newer than the state of c (isEarlierState),
// withContainer ignores c.
func withContainer(observed []runtime.Incarnation, c runtime.Container) []runtime.Incarnation {
	incarnations := slices.Clone(observed)
	for i := range incarnations {
		j := slices.IndexFunc(incarnations[i].Containers, func(other runtime.Container) bool { return other.ID == c.ID })
		if j < 0 && (c.SandboxID == "" || incarnations[i].ID != c.SandboxID) {
			continue
		}
		cs := slices.Clone(incarnations[i].Containers)
		if j < 0 {
			cs = append(cs, c)
		} else {
			if isEarlierState(c.State, cs[j].State) {
				continue
			}
			c.SandboxID = cs[j].SandboxID
			cs[j] = c
		}
		incarnations[i].Containers = cs
	}
	return incarnations
}

// isEarlierState reports whether a container was in the given state before it was in the current
// state. A container that has exited never runs again, and a known exit code does not become
// unknown.
func isEarlierState(state, current runtime.ContainerState) bool {
	switch current {
	case runtime.Exited:
		return state != runtime.Exited
	case runtime.ExitCodeUnknown:
		return state == runtime.Created || state == runtime.Running
	}
	return false
}

// withoutContainer returns observed without the container with ID id.
func withoutContainer(observed []runtime.Incarnation, id string) []runtime.Incarnation {
	incarnations := slices.Clone(observed)
	for i := range incarnations {
		incarnations[i].Containers = slices.DeleteFunc(slices.Clone(incarnations[i].Containers), func(c runtime.Container) bool { return c.ID == id })
	}
	return slices.DeleteFunc(incarnations, func(inc runtime.Incarnation) bool { return inc.ID == "" && len(inc.Containers) == 0 })
}

// withoutSandbox returns observed without the sandbox with ID id.
func withoutSandbox(observed []runtime.Incarnation, id string) []runtime.Incarnation {
	return slices.DeleteFunc(slices.Clone(observed), func(inc runtime.Incarnation) bool { return inc.ID == id })
}

// withExits returns observed with the exits in recorded: if a container has exited in recorded, it
// has also exited in the result. An effect may have received an exit code that the observer could
// not query. A container never runs again after its exit. withExits does not modify its arguments.
func withExits(observed, recorded []runtime.Incarnation) []runtime.Incarnation {
	exitedContainers := map[string]runtime.Container{}
	for i := range recorded {
		for _, c := range recorded[i].Containers {
			if c.State == runtime.Exited {
				exitedContainers[c.ID] = c
			}
		}
	}
	for i := range observed {
		for _, c := range observed[i].Containers {
			if end, ok := exitedContainers[c.ID]; ok && c.State != runtime.Exited {
				observed = withContainer(observed, end)
			}
		}
	}
	return observed
}

// lostExits returns an exit for each container that another program has removed, by container name.
// previous contains the previously observed incarnations, and current the newest ones. A removed
// container is missing in current, but its sandbox is not. lostExits omits containers that had not
// started or whose exit was reported. As in a kubelet, a removed container counts as failed with
// the code status.LostExitCode. Only the incarnations for which includes returns true are compared.
// at is the time of the exits.
func lostExits(includes func(*runtime.Incarnation) bool, previous, current []runtime.Incarnation, at time.Time) map[string]*plan.Exit {
	var exits map[string]*plan.Exit
	for i := range previous {
		inc := &previous[i]
		if inc.ID == "" || !includes(inc) || runtime.FindSandbox(current, inc.ID) == nil {
			continue
		}
		for j := range inc.Containers {
			c := &inc.Containers[j]
			if c.State == runtime.Created || c.State == runtime.Exited {
				continue
			}
			if _, found := runtime.FindContainer(current, c.ID); found == nil {
				exits = withKey(exits, c.Name, lostExit(c, at))
			}
		}
	}
	return exits
}

// lostExit returns the exit of container c, which the runtime no longer lists. at is the time of
// the exit.
func lostExit(c *runtime.Container, at time.Time) *plan.Exit {
	e := plan.NewExit(c)
	e.Code, e.Reason, e.Message = status.LostExitCode, status.ContainerStatusUnknown, "The runtime no longer lists the container"
	e.FinishedAt = at.Round(0)
	return e
}

// IsRunning reports whether observed contains a live incarnation of version p (plan.IsLive). p may
// be nil.
func IsRunning(observed []runtime.Incarnation, p *manifest.Pod) bool {
	return slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool { return plan.IsCreatedFrom(&inc, p) && plan.IsLive(&inc) })
}

// awaitsExitCode reports whether a container of version p has exited with an unknown exit code. p
// may be nil.
func awaitsExitCode(observed []runtime.Incarnation, p *manifest.Pod) bool {
	return slices.ContainsFunc(observed, func(inc runtime.Incarnation) bool {
		return plan.IsCreatedFrom(&inc, p) && lacksExitCode(&inc)
	})
}

// lacksExitCode reports whether a container of inc has exited with an unknown exit code.
func lacksExitCode(inc *runtime.Incarnation) bool {
	return slices.ContainsFunc(inc.Containers, func(c runtime.Container) bool { return c.State == runtime.ExitCodeUnknown })
}
