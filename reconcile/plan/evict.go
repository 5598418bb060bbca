package plan

import (
	"time"

	"podd/manifest"
	"podd/runtime"
)

// Evicted is the reason of a pod that was evicted, Preempted of one that was stopped in
// favor of a critical pod.
const (
	Evicted   = "Evicted"
	Preempted = "Preempting"
)

// evictGrace is the grace period of an evicted pod, including its preStop hooks, because
// the pod continues to use the node's resources meanwhile. It is the kubelet's
// immediateEvictionGracePeriodSeconds. An eviction does not wait until it is on disk,
// because the pod may be what fills the disk. If podd is killed before that, a pod that may
// restart starts with empty volumes, and is evicted again if it exceeds its limit again. A
// pod that may not restart is Failed according to the exit codes of its containers.
const evictGrace = time.Second

// names reports whether e evicts the version p; e may be nil.
func (e *Eviction) evicts(p *manifest.Pod) bool {
	return e != nil && e.UID == p.UID && e.Hash == p.Hash
}

// graceAt returns the grace period of an incarnation: its own, which an eviction or a node
// shutdown can only shorten.
func graceAt(inc *runtime.Incarnation, fin *Finished) time.Duration {
	if fin == nil || fin.UID != inc.UID || fin.Hash != inc.Annotations[runtime.AnnotationHash] {
		return graceOf(inc)
	}
	switch fin.Reason {
	case Evicted:
		return min(graceOf(inc), evictGrace)
	case Terminated:
		return min(graceOf(inc), max(fin.Grace, evictGrace))
	}
	return graceOf(inc)
}
