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
	ReasonTerminated  = "Terminated"
	TerminatedMessage = "Pod was terminated in response to imminent node shutdown."
)

// A ShutdownGroup contains the pods with a priority of at least Priority and lower than the Priority
// of the next group. The lowest group also contains all pods with a lower priority.
type ShutdownGroup struct {
	Priority int32
	// Grace is the maximum grace period of the pods in the group. The next group waits at most
	// this long for these pods.
	Grace time.Duration
}

// A ShutdownPod is a pod that a node shutdown must stop.
type ShutdownPod struct {
	Key      types.NamespacedName
	Priority int32
	// Grace is the maximum grace period of the group. AdvanceShutdown sets it.
	Grace time.Duration
}

// ShutdownProgress is the progress of a node shutdown.
type ShutdownProgress struct {
	Group int       // index of the group that is being stopped
	Since time.Time // when the stop of the group began; zero if it has not begun
}

// AdvanceShutdown returns the progress of a node shutdown at the time now, and the pods to stop. t
// is the progress that the previous call returned, or the zero value in the first call. pods
// contains the pods that exist on the node. groups must have at least one element and be in
// ascending order of priority.
//
// A group without pods is skipped. The next group begins when the current group has no pods any
// more, or when its grace period has passed. So stop may also contain pods of earlier groups.
// wakeAt is the time at which AdvanceShutdown must be called again if nothing happens; zero means
// never.
func AdvanceShutdown(groups []ShutdownGroup, t ShutdownProgress, pods []ShutdownPod, now time.Time) (newProgress ShutdownProgress, stop []ShutdownPod, wakeAt time.Time) {
	group := func(p ShutdownPod) int { return groupOf(groups, p.Priority) }
	for ; t.Group < len(groups); t = (ShutdownProgress{Group: t.Group + 1}) {
		if !slices.ContainsFunc(pods, func(p ShutdownPod) bool { return group(p) == t.Group }) {
			continue
		}
		if t.Since.IsZero() {
			t.Since = now
		}
		if end := t.Since.Add(groups[t.Group].Grace); now.Before(end) || groups[t.Group].Grace == 0 && t.Since.Equal(now) {
			wakeAt = end
			break
		}
	}
	for _, p := range pods {
		if n := group(p); n <= t.Group {
			p.Grace = groups[n].Grace
			stop = append(stop, p)
		}
	}
	return t, stop, wakeAt
}

// groupOf returns the index of the group that contains pods with this priority.
func groupOf(groups []ShutdownGroup, priority int32) int {
	i, isExact := slices.BinarySearchFunc(groups, priority, func(g ShutdownGroup, p int32) int { return cmp.Compare(g.Priority, p) })
	if isExact {
		return i
	}
	return max(i-1, 0)
}

// endByShutdown returns the end of a pod that a node shutdown has stopped. A pod without the trait
// RunsOnce runs again after the shutdown. If podd is killed and started again before the end is on
// disk, podd stops the pod again, because the run directory records the shutdown. If the node is
// booted instead, the pod runs again, as after a power failure.
func (f *facts) endByShutdown(e *Eviction) *PodEnd {
	fin := f.failedEnd(ReasonTerminated, e.Message)
	fin.Grace, fin.Resumes = e.Grace, !f.in.Desired.Traits.RunsOnce
	return fin
}

// mayResume reports whether the pod runs again after it was evicted, or after the end of the node
// shutdown that stopped it.
func (f *facts) mayResume() bool {
	fin := f.in.History.Finished
	return !f.in.Node.ShuttingDown && fin.AppliesTo(f.desired) && fin.Resumes
}
