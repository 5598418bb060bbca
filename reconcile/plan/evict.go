package plan

import (
	"time"

	"podd/runtime"
)

// Evicted is the reason of a pod that the node does not go on running, Preempted
// of one that gives way to a critical one.
const (
	Evicted   = "Evicted"
	Preempted = "Preempting"
)

// evictGrace is all that an evicted pod gets to end, its preStop hooks included:
// what it does to the node would go on meanwhile. It is the kubelet's
// immediateEvictionGracePeriodSeconds.
const evictGrace = time.Second

// graceAt is the grace that an incarnation ends with from now on: its own, which
// an eviction or the node's shutdown only shrinks.
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
