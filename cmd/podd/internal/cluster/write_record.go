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
	mine      *server.PodView
	cached    *v1.Pod
	isPresent bool    // mine or cached is set
	last      *v1.Pod // last shown pod with a UID
	facts     facts   // of the last decision; zero: decide again
	inFlight  verb    // request in flight
	answer    *outcome
	futile    string // a patch that the API server accepted without effect
	problem   string // of the last decision
	attempt   attempted
}

// An outcome is the result of a request until a snapshot contains it.
type outcome struct {
	uid   types.UID
	pod   *v1.Pod // nil: it is deleted
	made  bool    // created by podd, and not in a snapshot yet
	until time.Time
}

// outcomeTime is how long an outcome takes precedence over the snapshot.
const outcomeTime = 5 * time.Second

// attempted is the result of failed attempts; zero if the last one succeeded.
type attempted struct {
	of    types.UID // "": a create
	why   string
	since time.Time
	wait  time.Duration
	next  time.Time
}

// wake returns the time at which the outcome expires, or zero.
func (r *record) wake() time.Time {
	if r.answer == nil {
		return time.Time{}
	}
	return r.answer.until
}

// seen returns the pod as in the API server, from the snapshot and a newer outcome.
func (r *record) seen(now time.Time) *v1.Pod {
	s, a := r.cached, r.answer
	switch {
	case a == nil:
		return s
	case !now.Before(a.until), s != nil && s.UID != a.uid, s == nil && !a.made, s != nil && a.pod != nil && !older(s, a.pod):
		r.answer = nil
		return s
	}
	return a.pod
}

// older compares resource versions. It returns false if one is not a number.
func older(a, b *v1.Pod) bool {
	x, xErr := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, yErr := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return xErr == nil && yErr == nil && x < y
}

// factsOf returns the current facts. ending maps deleted pods to a batch of the source.
// Once podd has applied that batch, a pod that it does not show is gone.
func (r *record) factsOf(ending map[types.UID]uint64, node *v1.Node, view *server.View, now time.Time) facts {
	f := facts{mine: r.mine, seen: r.seen(now), node: node, isWhole: !view.Starting, complete: len(view.Unread) == 0}
	if r.mine != nil && isDecided(r.mine) {
		r.last = r.mine.Pod
	}
	if f.seen == nil {
		return f
	}
	if l := r.last; l != nil && (l.UID == f.seen.UID || isMirror(f.seen) && isStatic(l)) {
		f.last = l
	}
	batch := ending[f.seen.UID]
	f.ended = f.seen.DeletionTimestamp != nil && batch > 0 && view.Taken[server.ClusterSource] >= batch && !f.isHere()
	return f
}
