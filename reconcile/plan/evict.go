package plan

import (
	"time"

	"podd/runtime"
)

// Evicted is the reason of a pod that the node does not go on running.
const Evicted = "Evicted"

// evictGrace is all that an evicted pod gets to end, its preStop hooks included:
// what it does to the node would go on meanwhile. It is the kubelet's
// immediateEvictionGracePeriodSeconds.
const evictGrace = time.Second

// graceAt is the grace that an incarnation ends with from now on: its own, which
// an eviction only shrinks.
func graceAt(inc *runtime.Incarnation, fin *Finished) time.Duration {
	if fin != nil && fin.Reason == Evicted && fin.UID == inc.UID && fin.Hash == inc.Annotations[runtime.AnnotationHash] {
		return min(graceOf(inc), evictGrace)
	}
	return graceOf(inc)
}
