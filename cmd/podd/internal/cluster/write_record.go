package cluster

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// record is what the writer remembers of one pod name.
type record struct {
	mine    *server.PodView
	sighted *v1.Pod
	there   bool    // one of them is
	last    *v1.Pod // the newest shown that had a UID
	facts   facts   // of the last decision; zero: decide again
	asked   verb    // under way
	answer  *outcome
	futile  string // a patch that the API server took and made nothing of
	trouble string // of the last decision
	attempt attempted
}

// outcome is what an answer said of a pod, before it is sighted.
type outcome struct {
	uid   types.UID
	pod   *v1.Pod // nil: it is gone
	made  bool    // by podd, and not sighted since
	until time.Time
}

// outcomeTime is how long an answer counts for more than what is sighted.
const outcomeTime = 5 * time.Second

// attempted is what became of the last attempts; zero: they went well.
type attempted struct {
	of    types.UID // "": to make one
	why   string
	since time.Time
	wait  time.Duration
	next  time.Time
}

// wake is when what was answered counts no more; zero: never.
func (r *record) wake() time.Time {
	if r.answer == nil {
		return time.Time{}
	}
	return r.answer.until
}

// seen is the pod as the cluster has it, by what was sighted and what was answered
// since.
func (r *record) seen(now time.Time) *v1.Pod {
	s, a := r.sighted, r.answer
	switch {
	case a == nil:
		return s
	case !now.Before(a.until), s != nil && s.UID != a.uid, s == nil && !a.made, s != nil && a.pod != nil && !older(s, a.pod):
		r.answer = nil
		return s
	}
	return a.pod
}

// older compares versions of one object. Those that are no numbers tell nothing.
func older(a, b *v1.Pod) bool {
	x, xErr := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, yErr := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return xErr == nil && yErr == nil && x < y
}

// factsOf are the facts now; ending are the pods that podd was told to end, by which
// batch of the source. Once podd has taken that, what it does not show is gone.
func (r *record) factsOf(ending map[types.UID]uint64, node *v1.Node, view *server.View, now time.Time) facts {
	f := facts{mine: r.mine, seen: r.seen(now), node: node, whole: !view.Starting, complete: len(view.Unread) == 0}
	if r.mine != nil && spoken(r.mine) {
		r.last = r.mine.Pod
	}
	if f.seen == nil {
		return f
	}
	if l := r.last; l != nil && (l.UID == f.seen.UID || isMirror(f.seen) && isStatic(l)) {
		f.last = l
	}
	batch := ending[f.seen.UID]
	f.ended = f.seen.DeletionTimestamp != nil && batch > 0 && view.Taken[SourceName] >= batch && !f.left()
	return f
}
