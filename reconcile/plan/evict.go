package plan

import (
	"cmp"
	"time"

	"podd/manifest"
	"podd/runtime"
)

// ReasonEvicted is the reason of a pod that was evicted. ReasonPreempted is the reason of a pod
// that was stopped so that a critical pod can run.
const (
	ReasonEvicted   = "Evicted"
	ReasonPreempted = "Preempting"
)

// evictGrace is the minimum grace period of an evicted pod, including its preStop hooks. The period
// is short because the pod uses the resources of the node until it has stopped. The value is the
// kubelet's immediateEvictionGracePeriodSeconds. Only a soft eviction threshold allows a longer
// period, which is in PodEnd.Grace.
//
// An evicted pod is stopped before the eviction is recorded on disk, because the pod may be what
// fills the disk. If podd is killed before the eviction is on disk, the eviction is lost. A pod
// that may restart then starts with empty volumes. It is evicted again if it exceeds its limit
// again. A pod that may not restart gets the phase that follows from the exit codes of its
// containers.
const evictGrace = time.Second

// isFor reports whether e is the eviction of version p. e may be nil.
func (e *Eviction) isFor(p *manifest.Pod) bool {
	return e != nil && e.UID == p.UID && e.Hash == p.Hash
}

// endByEviction returns the end of a pod that was evicted or preempted.
func (f *facts) endByEviction(e *Eviction) *PodEnd {
	fin := f.failedEnd(cmp.Or(e.Reason, ReasonEvicted), e.Message)
	fin.Grace, fin.Shortage = e.Grace, e.Shortage
	return fin
}

// effectiveGrace returns the grace period of an incarnation. The grace period is shorter if an
// eviction or a node shutdown has ended the version of the incarnation. fin is the end of a
// version; it may be nil.
func effectiveGrace(inc *runtime.Incarnation, fin *PodEnd) time.Duration {
	if fin == nil || fin.UID != inc.UID || fin.Hash != inc.Annotations[runtime.AnnotationPodHash] {
		return graceOf(inc)
	}
	switch fin.Reason {
	case ReasonEvicted, ReasonTerminated:
		return min(graceOf(inc), max(fin.Grace, evictGrace))
	}
	return graceOf(inc)
}
