package plan

import (
	"cmp"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

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
// that may restart then starts at once with empty volumes. It is evicted again if it exceeds its limit
// again. A pod that may not restart gets the phase that follows from the exit codes of its
// containers.
const evictGrace = time.Second

// minOverdue is the minimum time in which a pod that the node stops must have stopped. The value is that
// of the kubelet (killPodNow).
const minOverdue = 10 * time.Second

// isByNode reports whether the node has stopped the pod to release resources or to shut down.
func (f *PodEnd) isByNode() bool {
	return f.Reason == ReasonEvicted || f.Reason == ReasonPreempted || f.Reason == ReasonTerminated
}

// checkOverdue sets d.OverdueUID if incarnation inc still runs after one and a half times its grace
// period, as in the kubelet. The runtime may have failed to kill its containers.
func (f *facts) checkOverdue(d *Decision, inc *runtime.Incarnation, t stopBudget) {
	overdueAt := t.since.Add(max(t.grace+t.grace/2, minOverdue))
	switch {
	case !IsLive(inc):
	case f.in.Now.Before(overdueAt):
		d.wakeAt(overdueAt)
	default:
		d.OverdueUID = inc.UID
	}
}

// AppliesTo reports whether e is the eviction of version p. e may be nil.
func (e *Eviction) AppliesTo(p *manifest.Pod) bool {
	return e != nil && e.UID == p.UID && e.Hash == p.Hash
}

// endByEviction returns the end of a pod that was evicted or preempted.
func (f *facts) endByEviction(e *Eviction) *PodEnd {
	fin := f.failedEnd(cmp.Or(e.Reason, ReasonEvicted), e.Message)
	fin.Grace, fin.Resource, fin.Shortage, fin.StorageLimit, fin.Transition = e.Grace, e.Resource, e.Shortage, e.StorageLimit, e.Transition
	p := f.in.Desired
	if fin.Resumes = e.Restarts && fin.Reason == ReasonEvicted && !p.Traits.RunsOnce && p.Object.Spec.RestartPolicy != v1.RestartPolicyNever; fin.Resumes {
		fin.Evictions = 1
		if f.in.Now.Sub(f.in.History.StartTime) < backoffReset {
			fin.Evictions += f.in.History.Evictions
		}
	}
	return fin
}

// WaitsForRestart reports whether f is the end of an evicted pod that runs again. f may be nil. Such
// a pod is admitted like a pod that has not run yet.
func (f *PodEnd) WaitsForRestart() bool { return f != nil && f.Reason == ReasonEvicted && f.Resumes }

// restartEvicted sets d.Resume if the evicted pod may start again: if its back-off has passed and
// admission admits it. While the node is under pressure, admission does not admit it. Otherwise
// restartEvicted explains what the pod waits for. The back-off is that of crashed containers.
// Because of it, a pod that causes the pressure does not start again immediately. The pod also waits for
// PodEnd.Transition, because a podd that was restarted does not know a pressure that has just ended.
func (f *facts) restartEvicted(d *Decision, fin *PodEnd) {
	resumeAt, transitionEnd := fin.At.Add(backoffDelay(fin.Evictions, f.in.Node.MaxBackoff)), fin.At.Add(fin.Transition)
	explanation := strings.TrimSuffix(d.Why, ". ") + "; "
	switch {
	case f.in.Now.Before(resumeAt):
		d.wakeAt(resumeAt)
		d.Why = explanation + "the pod starts again after a back-off"
	case f.in.Verdict.Answer != Admit:
		d.Why = explanation + "the pod waits to start again: " + f.in.Verdict.Message
	case f.in.Now.Before(transitionEnd):
		d.wakeAt(transitionEnd)
		d.Why = explanation + "the pod starts again after the transition period of the node pressure"
	default:
		d.Resume = true
	}
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
