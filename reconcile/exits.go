package reconcile

import (
	"podd/runtime"
)

// withExits is what was observed, with the ends of containers that are known
// already: an observer that could not ask how a container ended tells what it
// was before. No container runs again, so what has ended stays ended.
// Neither argument is written to.
func withExits(observed, known []runtime.Incarnation) []runtime.Incarnation {
	ended := map[string]runtime.Container{}
	for i := range known {
		for _, c := range known[i].Containers {
			if c.State == runtime.Exited {
				ended[c.ID] = c
			}
		}
	}
	for i := range observed {
		for _, c := range observed[i].Containers {
			if end, ok := ended[c.ID]; ok && c.State != runtime.Exited {
				observed = withContainer(observed, end)
			}
		}
	}
	return observed
}
