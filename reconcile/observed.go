package reconcile

import (
	"slices"

	"podd/runtime"
)

// withContainer puts c in place of the one with its ID, else into its sandbox.
// What was seen to have ended does not run again, however late c comes.
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
			if cs[at].State == runtime.Exited && c.State != runtime.Exited {
				continue
			}
			c.SandboxID = cs[at].SandboxID
			cs[at] = c
		}
		out[i].Containers = cs
	}
	return out
}

func withoutContainer(observed []runtime.Incarnation, id string) []runtime.Incarnation {
	out := slices.Clone(observed)
	for i := range out {
		out[i].Containers = slices.DeleteFunc(slices.Clone(out[i].Containers), func(c runtime.Container) bool { return c.ID == id })
	}
	return slices.DeleteFunc(out, func(inc runtime.Incarnation) bool { return inc.ID == "" && len(inc.Containers) == 0 })
}

func withoutSandbox(observed []runtime.Incarnation, id string) []runtime.Incarnation {
	return slices.DeleteFunc(slices.Clone(observed), func(inc runtime.Incarnation) bool { return inc.ID == id })
}
