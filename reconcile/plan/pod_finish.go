package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// isFinished reports whether the end of the pod is in the history, or follows from the current
// state of the pod.
func (f *facts) isFinished() bool {
	if f.in.History.Finished.AppliesTo(f.desired) {
		return true
	}
	return f.endOfPod() != nil
}

// endOfPod returns the end of the pod; nil if it has not finished.
func (f *facts) endOfPod() *PodEnd {
	if f.in.Desired.HasFinishedAtSource() {
		return f.endAtSource()
	}
	e := f.in.Eviction
	isEvicted := e.AppliesTo(f.in.Desired)
	if isEvicted && e.Reason != ReasonTerminated {
		return f.endByEviction(e)
	}
	completed := f.completedEnd()
	switch {
	case completed != nil && !completed.Failed:
		return completed
	case f.isRejected():
		return f.rejectedEnd(f.in.Verdict.Reason, f.in.Verdict.Message)
	case completed != nil && !f.mayBeRejected():
		return completed
	}
	switch isOverdue := f.isPastDeadline(); {
	case isEvicted && !(isOverdue && (f.current == nil || !IsLive(f.current))):
		// The shutdown takes precedence over the deadline, because running containers get
		// the grace period of the shutdown.
		return f.endByShutdown(e)
	case isOverdue:
		return f.failedEnd(ReasonDeadlineExceeded, "Pod was active on the node longer than the specified deadline")
	case f.isPastAttachDeadline():
		return f.rejectedEnd(ReasonAttachLimitExceeded, f.in.Objects.AttachLimitMessage)
	}
	return nil
}

// RejectedPrefix is the prefix of the message of a pod that its node has rejected permanently.
const RejectedPrefix = "Pod was rejected: "

// isRejected reports whether admission has rejected a pod of a cluster. Such a pod fails instead of
// waiting, because the cluster can replace it by a pod on another node.
func (f *facts) isRejected() bool {
	return f.mayBeRejected() && f.in.Verdict.Answer == Reject && f.in.Node.RuntimeReachable
}

// mayBeRejected reports whether the pod belongs to a cluster and is not admitted. If the containers of
// such a pod have failed, the pod has not finished before admission is decided. As in a kubelet, the
// reason of a rejection takes precedence over the failure of containers.
func (f *facts) mayBeRejected() bool {
	return f.in.Desired.Traits.FailsIfRejected && f.isNotAdmitted()
}

// endAtSource returns the end of the pod according to the status that its source has for it.
func (f *facts) endAtSource() *PodEnd {
	s := &f.in.Desired.Object.Status
	fin := f.failedEnd(s.Reason, s.Message)
	fin.Failed = s.Phase == v1.PodFailed
	return fin
}

// rejectedEnd returns the end of a pod that this node has rejected.
func (f *facts) rejectedEnd(reason, message string) *PodEnd {
	end := f.failedEnd(reason, RejectedPrefix+message)
	end.IsRejected = true
	return end
}

// failedEnd returns the end of a pod that fails for the given reason, not because of its
// containers.
func (f *facts) failedEnd(reason, message string) *PodEnd {
	return &PodEnd{
		UID: f.in.Desired.UID, Hash: f.in.Desired.Hash, Size: f.desired.PodSize(), At: f.in.Now,
		Failed: true, Reason: reason, Message: message,
	}
}

// completedEnd returns the end of a pod after its containers have completed or failed; nil if the
// pod has not finished by itself.
func (f *facts) completedEnd() *PodEnd {
	fin := &PodEnd{UID: f.in.Desired.UID, Hash: f.in.Desired.Hash, Size: f.desired.PodSize(), At: f.in.Now}
	if m := f.failedInit(); m != nil {
		fin.Failed = true
		fin.Message = fmt.Sprintf("init container %s failed with exit code %d", m.spec.Name, m.last.ExitCode)
		return fin
	}
	isLost := f.isLostForGood()
	for i := range f.containers {
		m := &f.containers[i]
		if m.kind != KindRegular {
			continue
		}
		if !f.isCompleted(m) {
			if !isLost {
				return nil
			}
			fin.Failed = true
			fin.Message = "the sandbox disappeared before container " + m.spec.Name + " exited"
			continue
		}
		fin.Failed = fin.Failed || m.lastExit().Code != 0
	}
	return fin
}

// failedInit returns the init container that failed permanently, so that the pod fails; nil if
// there is none.
func (f *facts) failedInit() *containerFacts {
	if f.wasRegularCreated() {
		return nil
	}
	for i := range f.containers {
		m := &f.containers[i]
		if m.kind == KindInit && m.hasState(runtime.Exited) && m.last.ExitCode != 0 && !f.restartsAfter(m, m.last.ExitCode) && !m.isRestartRequested() {
			return m
		}
	}
	return nil
}

// isLostForGood reports whether the sandbox was lost and the pod does not run again in a new
// sandbox, because none of its containers may be restarted.
func (f *facts) isLostForGood() bool {
	if !f.isSandboxLost() {
		return false
	}
	hasRun := false
	for i := range f.containers {
		m := &f.containers[i]
		if f.needsExitCode(m) {
			return false
		}
		if m.kind != KindRegular {
			continue
		}
		if f.mayRunAgain(m) {
			return false
		}
		hasRun = hasRun || m.hasRun || f.current == nil && f.ranAtSource(m)
	}
	return hasRun
}

// isSandboxLost reports whether the sandbox of the pod has stopped and podd has released its network,
// or whether the runtime lists no sandbox of the pod. If the journal is unreadable, a sandbox that is
// not listed does not count as lost, because the pod may have finished before.
func (f *facts) isSandboxLost() bool {
	if f.current == nil {
		return !f.mayHaveUnknownObject() && f.in.JournalError == ""
	}
	return !f.current.Ready && f.in.History.ReleasedSandboxes[f.current.ID]
}

// ranAtSource reports whether the container has run according to the status that the source has for
// the pod.
func (f *facts) ranAtSource(m *containerFacts) bool {
	return f.in.Desired.Traits.HasStateAtSource && slices.ContainsFunc(f.in.Desired.Object.Status.ContainerStatuses, func(s v1.ContainerStatus) bool {
		return s.Name == m.spec.Name && (s.State.Running != nil || s.State.Terminated != nil)
	})
}

// mayRunAgain reports whether a container may be restarted after its last exit. If the exit code is
// unknown, only the restart policy is evaluated, because restart rules depend on the exit code.
func (f *facts) mayRunAgain(m *containerFacts) bool {
	if e := m.lastExit(); e != nil && !m.isRestartRequested() {
		return f.restartsAfter(m, e.Code)
	}
	return f.restartPolicy(m) != v1.RestartPolicyNever
}
