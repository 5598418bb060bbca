package reconcile

import (
	"time"

	"podd/reconcile/plan"
	"podd/reconcile/status"
	"podd/runtime"
)

// withExits returns the observed incarnations with the exits that are known already: an
// effect may have received an exit code that the observer could not query. No container
// runs again, so a container that has exited stays so. Neither argument is modified.
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

// lostEnds returns an exit for each container that was listed before and has disappeared
// without a reported exit, although its sandbox is still listed: someone removed it. As
// with a kubelet, that is a failure, with a code that no container returned. p selects the
// incarnations.
func lostEnds(p func(*runtime.Incarnation) bool, before, now []runtime.Incarnation, at time.Time) map[string]plan.Exit {
	var lost map[string]plan.Exit
	for i := range before {
		inc := &before[i]
		if inc.ID == "" || !p(inc) || runtime.FindSandbox(now, inc.ID) == nil {
			continue
		}
		for j := range inc.Containers {
			c := &inc.Containers[j]
			if c.State == runtime.Created || c.State == runtime.Exited {
				continue
			}
			if _, there := runtime.FindContainer(now, c.ID); there == nil {
				lost = with(lost, c.Name, lostEnd(c, at))
			}
		}
	}
	return lost
}

// lostEnd returns the exit of a container that disappeared.
func lostEnd(c *runtime.Container, at time.Time) plan.Exit {
	return plan.Exit{
		ID: c.ID, Code: status.LostCode, Reason: status.ContainerStatusUnknown, Message: "The runtime no longer lists the container",
		StartedAt: c.StartedAt, FinishedAt: at.Round(0), Attempt: c.Attempt, Skipped: c.Attempt - c.Restarts(),
	}
}
