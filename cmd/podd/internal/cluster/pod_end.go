package cluster

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endOf is a pod of which nothing is left here, by how it was shown last: whatever
// its restart policy, nothing of it runs again.
func endOf(last *v1.Pod, now metav1.Time) *v1.Pod {
	p := *last
	p.Status = *last.Status.DeepCopy()
	s := &p.Status
	if isInitialized(s) {
		lose(s.ContainerStatuses)
	}
	lose(s.InitContainerStatuses[:max(len(begun(s.InitContainerStatuses)), min(1, len(s.InitContainerStatuses)))])
	reason := "PodCompleted"
	if !isOver(s.Phase) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, "", ""
		if wellEnded(s.ContainerStatuses) {
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

// isInitialized says that there is a sign of a regular container's start.
func isInitialized(s *v1.PodStatus) bool {
	return len(s.InitContainerStatuses) == 0 || len(begun(s.ContainerStatuses)) > 0
}

// begun are all up to the last that was started.
func begun(all []v1.ContainerStatus) []v1.ContainerStatus {
	for i := len(all); i > 0; i-- {
		if c := &all[i-1]; c.State.Waiting == nil || c.LastTerminationState.Terminated != nil {
			return all[:i]
		}
	}
	return nil
}

// lose ends what nobody saw the end of. The code stands for some failure.
func lose(all []v1.ContainerStatus) {
	for i := range all {
		c := &all[i]
		if c.State.Terminated != nil {
			continue
		}
		c.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
		}}
		c.Ready, c.Started = false, new(false)
	}
}

func wellEnded(all []v1.ContainerStatus) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(c v1.ContainerStatus) bool {
		return c.State.Terminated == nil || c.State.Terminated.ExitCode != 0
	})
}
