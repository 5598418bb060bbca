package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The reason and message of a pod that was stopped because of a node shutdown, as in a
// kubelet.
const (
	Terminated        = "Terminated"
	TerminatedMessage = "Pod was terminated in response to imminent node shutdown."
)

// A ShutdownGroup contains the pods with a priority of at least Priority and lower than
// that of the next group. The lowest group also contains all pods with a lower priority.
type ShutdownGroup struct {
	Priority int32
	// Grace is the maximum grace period of its pods, and how long the next group waits for
	// them.
	Grace time.Duration
}

// A ShutdownPod is a pod in a node shutdown.
type ShutdownPod struct {
	Key      types.NamespacedName
	Priority int32
	// Grace is its maximum grace period: that of its group, set by NextTurn.
	Grace time.Duration
}

// A ShutdownProgress is the progress of a shutdown: which group is being stopped, and since when. A
// zero Since means that its pods were not stopped yet.
type ShutdownProgress struct {
	Group int
	Since time.Time
}

// AdvanceShutdown returns the progress of a shutdown at now and the pods to stop. pods are those
// that have something on the node; groups has at least one element, in rising order. A
// group without pods takes no time, and the wait for a group ends with its grace period. The
// pods to stop include those left of earlier groups. wake is when to call NextTurn again if
// nothing happens; zero: not needed.
func AdvanceShutdown(groups []ShutdownGroup, t ShutdownProgress, pods []ShutdownPod, now time.Time) (next ShutdownProgress, stop []ShutdownPod, wake time.Time) {
	group := func(p ShutdownPod) int { return groupOf(groups, p.Priority) }
	for ; t.Group < len(groups); t = (ShutdownProgress{Group: t.Group + 1}) {
		if !slices.ContainsFunc(pods, func(p ShutdownPod) bool { return group(p) == t.Group }) {
			continue
		}
		if t.Since.IsZero() {
			t.Since = now
		}
		if end := t.Since.Add(groups[t.Group].Grace); now.Before(end) || groups[t.Group].Grace == 0 && t.Since.Equal(now) {
			wake = end
			break
		}
	}
	for _, p := range pods {
		if n := group(p); n <= t.Group {
			p.Grace = groups[n].Grace
			stop = append(stop, p)
		}
	}
	return t, stop, wake
}

// groupOf returns the index of the highest group for a priority.
func groupOf(groups []ShutdownGroup, priority int32) int {
	i, found := slices.BinarySearchFunc(groups, priority, func(g ShutdownGroup, p int32) int { return cmp.Compare(g.Priority, p) })
	if found {
		return i
	}
	return max(i-1, 0)
}

// terminated returns the end caused by a node shutdown. Without the trait
// RunsOnce the pod runs again after the shutdown. If podd is killed before the
// end is on disk, it stops the pod again, because the shutdown is recorded in the run
// directory. After a boot the pod runs as if it had been interrupted.
func (f *facts) terminated(e *Eviction) *Finished {
	fin := f.failure(Terminated, e.Message)
	fin.Grace, fin.Resumes = e.Grace, !f.in.Desired.Traits.RunsOnce
	return fin
}

// resumes reports whether the shutdown that stopped the pod is over.
func (f *facts) resumes() bool {
	fin := f.in.History.Finished
	return !f.in.Node.ShuttingDown && fin.AppliesTo(f.desired) && fin.Resumes
}
