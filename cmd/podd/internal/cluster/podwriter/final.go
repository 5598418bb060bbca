package podwriter

import (
	"slices"

	"podd/manifest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// finalPod returns a copy of last with the final status of a pod that podd has removed from this
// node. last is the last version of the pod in the View. A container whose exit was not reported
// is reported as failed. finalPod ignores the restart policy, because no container restarts on this
// node.
func finalPod(last *v1.Pod, now metav1.Time) *v1.Pod {
	p := *last
	p.Status = *last.Status.DeepCopy()
	s := &p.Status
	if isInitialized(s) {
		markUnknown(s.ContainerStatuses)
	}
	markUnknown(s.InitContainerStatuses[:max(len(trimUnstarted(s.InitContainerStatuses)), min(1, len(s.InitContainerStatuses)))])
	reason := "PodCompleted"
	if !manifest.IsTerminal(s.Phase) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, "", ""
		if haveAllSucceeded(s.ContainerStatuses) {
			s.Phase = v1.PodSucceeded
		}
	}
	if s.Phase == v1.PodFailed {
		reason = "PodFailed"
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if (c.Type == v1.PodReady || c.Type == v1.ContainersReady) && c.Status != v1.ConditionFalse {
			*c = v1.PodCondition{Type: c.Type, Status: v1.ConditionFalse, Reason: reason, LastTransitionTime: now}
		}
	}
	return &p
}

// isInitialized reports whether the init containers have completed. It returns true if the pod
// has no init containers or a regular container was started.
func isInitialized(s *v1.PodStatus) bool {
	return len(s.InitContainerStatuses) == 0 || len(trimUnstarted(s.ContainerStatuses)) > 0
}

// trimUnstarted returns the statuses without the containers after the last container that was
// started. It returns nil if no container was started.
func trimUnstarted(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	for i := len(statuses); i > 0; i-- {
		if c := &statuses[i-1]; c.State.Waiting == nil || c.LastTerminationState.Terminated != nil {
			return statuses[:i]
		}
	}
	return nil
}

// markUnknown marks each container that has not terminated as terminated with exit code 137. The
// kubelet does the same if the exit code is unknown.
func markUnknown(statuses []v1.ContainerStatus) {
	for i := range statuses {
		c := &statuses[i]
		if c.State.Terminated != nil {
			continue
		}
		c.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
		}}
		c.Ready, c.Started = false, new(false)
	}
}

// haveAllSucceeded reports whether all containers have terminated with exit code 0. It returns false if
// there are no statuses.
func haveAllSucceeded(statuses []v1.ContainerStatus) bool {
	return len(statuses) > 0 && !slices.ContainsFunc(statuses, func(c v1.ContainerStatus) bool {
		return c.State.Terminated == nil || c.State.Terminated.ExitCode != 0
	})
}
