package plan

import (
	"time"

	"podd/manifest"
	"podd/runtime"
)

// Evicted is the reason of a pod that was evicted. Preempted is the reason of a pod that was
// stopped so that a critical pod can run.
const (
	Evicted   = "Evicted"
	Preempted = "Preempting"
)

// evictGrace is the grace period of an evicted pod, including its preStop hooks. It is short
// because the pod uses the resources of the node until it has stopped. It is the kubelet's
// immediateEvictionGracePeriodSeconds.
//
// An eviction does not wait until it is on disk, because the pod may be what fills the disk. If
// podd is killed before the eviction is on disk, a pod that may restart starts with empty volumes,
// and is evicted again if it exceeds its limit again. The phase of a pod that may not restart
// depends on the exit codes of its containers.
const evictGrace = time.Second

// evicts reports whether e is the eviction of version p. e may be nil.
func (e *Eviction) evicts(p *manifest.Pod) bool {
	return e != nil && e.UID == p.UID && e.Hash == p.Hash
}

// graceAt returns the grace period of an incarnation. If fin is the end of its version because of
// an eviction or a node shutdown, the grace period is shorter. fin may be nil.
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
