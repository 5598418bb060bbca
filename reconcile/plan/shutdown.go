package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// Terminated is the reason of a pod that was ended because the machine goes down,
// NodeShutdown that of one that is not begun for that.
const (
	Terminated   = "Terminated"
	NodeShutdown = "NodeShutdown"
)

// What pods show, a kubelet's words.
const (
	TerminatedMessage = "Pod was terminated in response to imminent node shutdown."
	rejectedMessage   = "Pod was rejected as the node is shutting down."
)

// ShutdownGroup are the pods of a priority, or more, that no higher group has. The
// lowest has those of less, too.
type ShutdownGroup struct {
	Priority int32
	// Grace is the most that each of its pods gets, and how long the next group
	// waits for them.
	Grace time.Duration
}

// ShutdownPod is a pod that ends in its turn.
type ShutdownPod struct {
	Key      types.NamespacedName
	Priority int32
	// Grace is the most it gets: that of its group, as NextTurn says.
	Grace time.Duration
}

// Turn is where a shutdown stands: which group ends, and since when; zero Since:
// none of it was seen yet.
type Turn struct {
	Group int
	Since time.Time
}

// NextTurn is where a shutdown stands now and whom it ends: pods are those of which
// something is on the machine, groups at least one, in rising order. A group without
// pods takes no time, and one whose pods outlast its grace is waited for no longer. It
// ends what is left of earlier groups, too. Wake is when to ask again if nothing
// happens; zero: no need.
func NextTurn(groups []ShutdownGroup, t Turn, pods []ShutdownPod, now time.Time) (next Turn, ends []ShutdownPod, wake time.Time) {
	group := func(p ShutdownPod) int { return groupOf(groups, p.Priority) }
	for ; t.Group < len(groups); t = (Turn{Group: t.Group + 1}) {
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
			ends = append(ends, p)
		}
	}
	return t, ends, wake
}

// groupOf is the place of the highest group that a priority reaches.
func groupOf(groups []ShutdownGroup, priority int32) int {
	i, found := slices.BinarySearchFunc(groups, priority, func(g ShutdownGroup, p int32) int { return cmp.Compare(g.Priority, p) })
	if found {
		return i
	}
	return max(i-1, 0)
}

// terminated is the end by a shutdown of the node. A pod of the API is another's to
// make again, a manifest on this machine is to run whenever the machine does.
func (f *facts) terminated(e *Evict) *Finished {
	fin := f.failed(Terminated, e.Message)
	fin.Grace, fin.Resumes = e.Grace, f.in.Desired.Origin.Kind != manifest.KindAPI
	return fin
}

// resumes tells whether the shutdown that ended the pod is over.
func (f *facts) resumes() bool {
	fin := f.in.History.Finished
	return !f.in.Node.ShuttingDown && fin.Of(f.wanted) && fin.Resumes
}
