package reconcile

import (
	"slices"

	"podd/runtime"
)

// withContainer returns observed with c in place of the container with its ID, or added to
// its sandbox. A container that has exited does not run again, even if an older state of it
// arrives late.
func withContainer(observed []runtime.Incarnation, c runtime.Container) []runtime.Incarnation {
	out := slices.Clone(observed)
	for i := range out {
		at := slices.IndexFunc(out[i].Containers, func(have runtime.Container) bool { return have.ID == c.ID })
		if at < 0 && (c.SandboxID == "" || out[i].ID != c.SandboxID) {
			continue
		}
		cs := slices.Clone(out[i].Containers)
		if at < 0 {
			cs = append(cs, c)
		} else {
			if endedBefore(cs[at].State, c.State) {
				continue
			}
			c.SandboxID = cs[at].SandboxID
			cs[at] = c
		}
		out[i].Containers = cs
	}
	return out
}

// endedBefore reports whether have is the state of a container that has ended, and next is
// an earlier state.
func endedBefore(have, next runtime.ContainerState) bool {
	switch have {
	case runtime.Exited:
		return next != runtime.Exited
	case runtime.ExitUnknown:
		return next == runtime.Created || next == runtime.Running
	}
	return false
}

// withoutContainer returns observed without the container with an ID.
func withoutContainer(observed []runtime.Incarnation, id string) []runtime.Incarnation {
	out := slices.Clone(observed)
	for i := range out {
		out[i].Containers = slices.DeleteFunc(slices.Clone(out[i].Containers), func(c runtime.Container) bool { return c.ID == id })
	}
	return slices.DeleteFunc(out, func(inc runtime.Incarnation) bool { return inc.ID == "" && len(inc.Containers) == 0 })
}

// withoutSandbox returns observed without the sandbox with an ID.
func withoutSandbox(observed []runtime.Incarnation, id string) []runtime.Incarnation {
	return slices.DeleteFunc(slices.Clone(observed), func(inc runtime.Incarnation) bool { return inc.ID == id })
}
