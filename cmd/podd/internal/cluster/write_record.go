package cluster

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// A record is the state of the writer for one pod name.
type record struct {
	local     *server.PodView // the pod as podd shows it; may be nil
	cached    *v1.Pod         // the pod in the last snapshot; may be nil
	isPresent bool            // local or cached is set
	last      *v1.Pod         // the last local pod with a decision
	facts     facts           // of the last decision; zero: decide again
	inFlight  verb            // of the request in flight
	outcome   *outcome        // of the last request; may be nil
	futile    string          // the last patch that the API server accepted without effect
	problem   string          // of the last decision
	attempt   retryState
}

// An outcome is the result of a successful request that a snapshot may not contain yet.
type outcome struct {
	uid   types.UID
	pod   *v1.Pod // nil: deleted
	made  bool    // podd has created the pod, and no snapshot contains it yet
	until time.Time
}

// outcomeTimeout is how long an outcome takes precedence over the snapshot.
const outcomeTimeout = 5 * time.Second

// A retryState is the state of failed attempts; zero if the last one succeeded.
type retryState struct {
	of    types.UID     // of the pod; "": a create
	why   string        // for users
	since time.Time     // of the first failure
	wait  time.Duration // between the last attempt and the next
	next  time.Time     // of the next attempt
}

// wake returns the time at which the outcome expires, or zero.
func (r *record) wake() time.Time {
	if r.outcome == nil {
		return time.Time{}
	}
	return r.outcome.until
}

// remote returns the pod in the API server according to the snapshot or a newer outcome.
func (r *record) remote(now time.Time) *v1.Pod {
	s, o := r.cached, r.outcome
	switch {
	case o == nil:
		return s
	case !now.Before(o.until), s != nil && s.UID != o.uid, s == nil && !o.made, s != nil && o.pod != nil && !isOlder(s, o.pod):
		r.outcome = nil
		return s
	}
	return o.pod
}

// isOlder compares resource versions. It returns false if one is not a number.
func isOlder(a, b *v1.Pod) bool {
	x, xErr := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, yErr := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return xErr == nil && yErr == nil && x < y
}

// currentFacts returns the current facts. deletions is Cluster.deletions: if podd has applied
// the batch that contains a pod as deleted and does not show the pod, nothing of it is left.
func (r *record) currentFacts(deletions map[types.UID]uint64, node *v1.Node, view *server.View, now time.Time) facts {
	f := facts{local: r.local, remote: r.remote(now), node: node, viewComplete: !view.Starting, sourcesComplete: len(view.UnreadSources) == 0}
	if r.local != nil && isDecided(r.local) {
		r.last = r.local.Pod
	}
	if f.remote == nil {
		return f
	}
	if l := r.last; l != nil && (l.UID == f.remote.UID || isMirror(f.remote) && isStatic(l)) {
		f.last = l
	}
	batch := deletions[f.remote.UID]
	f.ended = f.remote.DeletionTimestamp != nil && batch > 0 && view.AppliedBatches[server.ClusterSource] >= batch && !f.isHere()
	return f
}
