package podwriter

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/mirror"
	"podd/server"
)

// A podRecord is the state of the writer for one pod name.
type podRecord struct {
	local       *server.PodView // the pod in the View; may be nil
	cachedPod   *v1.Pod         // the pod in the last snapshot; may be nil
	isPresent   bool            // local or cachedPod is not nil
	lastDecided *v1.Pod         // the last local pod for which isDecided was true
	// changedAt is the time of the first change of local that is not in the API server yet; zero if
	// there is none. observedLocal is the local pod of the last change.
	changedAt     time.Time
	observedLocal *v1.Pod
	facts         podFacts // the facts of the last decision; zero means that a decision is due
	inFlight      verb     // the request in flight, or verbNone
	outcome       *outcome // the outcome of the last request; may be nil
	ignoredPatch  string   // the last patch that the API server accepted but did not apply; "" for none
	problem       string   // the problem of the last decision; "" for none
	retry         retryState
}

// An outcome is the result of a successful request. The last snapshot may not contain it yet.
type outcome struct {
	uid       types.UID
	pod       *v1.Pod // the pod in the response; nil if it was deleted
	isCreated bool    // podd has created the pod, and no snapshot has contained it yet
	expiresAt time.Time
}

// outcomeTimeout is the time for which an outcome takes precedence over an older snapshot.
const outcomeTimeout = 5 * time.Second

// A retryState describes the failed attempts of a request. It is zero if the last attempt
// succeeded.
type retryState struct {
	uid          types.UID     // UID of the pod; "" if the request creates the pod
	reason       string        // reason of the last failure, for users
	failingSince time.Time     // time of the first failure
	wait         time.Duration // time between the last attempt and the next attempt
	nextAttempt  time.Time     // time of the next attempt
}

// setLocal sets the pod in the View and records whether the pod has changed.
func (r *podRecord) setLocal(p *server.PodView, now time.Time) {
	r.local = p
	if p.Pod != r.observedLocal {
		r.observedLocal = p.Pod
		if r.changedAt.IsZero() {
			r.changedAt = now
		}
	}
}

// outcomeExpiry returns the time at which the outcome expires, or the zero time without an
// outcome.
func (r *podRecord) outcomeExpiry() time.Time {
	if r.outcome == nil {
		return time.Time{}
	}
	return r.outcome.expiresAt
}

// remote returns the pod in the API server according to the snapshot or a newer outcome. It drops
// an outcome that has expired or that the snapshot contains.
func (r *podRecord) remote(now time.Time) *v1.Pod {
	s, o := r.cachedPod, r.outcome
	switch {
	case o == nil:
		return s
	case !now.Before(o.expiresAt), s != nil && s.UID != o.uid, s == nil && !o.isCreated, s != nil && o.pod != nil && !isOlder(s, o.pod):
		r.outcome = nil
		return s
	}
	return o.pod
}

// isOlder reports whether the resource version of a is lower than the resource version of b. It
// returns false if a resource version is not a number.
func isOlder(a, b *v1.Pod) bool {
	x, xErr := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, yErr := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return xErr == nil && yErr == nil && x < y
}

// currentFacts returns the facts for a decision. deletions is Options.Deletions. currentFacts sets
// isRemoved if podd has applied the batch with the pod's deletion and the View does not contain the
// pod.
func (r *podRecord) currentFacts(deletions map[types.UID]uint64, node *v1.Node, view *server.View, now time.Time) podFacts {
	f := podFacts{local: r.local, remote: r.remote(now), node: node, isViewComplete: !view.Starting, areSourcesRead: len(view.UnreadSources) == 0}
	if r.local != nil && isDecided(r.local) {
		r.lastDecided = r.local.Pod
	}
	if f.remote == nil {
		return f
	}
	if l := r.lastDecided; l != nil && (l.UID == f.remote.UID || mirror.IsMirror(f.remote) && mirror.IsStatic(l)) {
		f.lastLocal = l
	}
	if p := view.RemovedPods[types.NamespacedName{Namespace: f.remote.Namespace, Name: f.remote.Name}]; p != nil && p.UID == f.remote.UID {
		f.lastLocal = p
	}
	batch := deletions[f.remote.UID]
	f.isRemoved = f.remote.DeletionTimestamp != nil && batch > 0 && view.AppliedBatches[server.ClusterSource] >= batch && !f.isInView()
	return f
}
