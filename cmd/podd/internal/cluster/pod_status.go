package cluster

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
)

// ownConditions are the pod conditions that the kubelet writes.
var ownConditions = []v1.PodConditionType{
	v1.PodResizePending, v1.PodResizeInProgress, v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
}

// removableConditions are those of them that may be removed.
var removableConditions = []v1.PodConditionType{v1.PodResizePending, v1.PodResizeInProgress}

// mergeStatus returns the status for the API server from the status that podd shows. It
// keeps the fields of others, and fields that may only be set once. Unless addressGiven, it
// also keeps addresses that would become loopback addresses, because other nodes cannot use
// these.
func mergeStatus(seen, mine *v1.Pod, addressGiven bool) *v1.PodStatus {
	was, is := &seen.Status, mine.Status.DeepCopy()
	next := was.DeepCopy()
	switch {
	case isOver(was.Phase): // final
	case isOver(is.Phase) && isAnyRunning(is):
		// The scheduler would consider the pod's resources free.
	default:
		next.Phase, next.Reason, next.Message = is.Phase, is.Reason, is.Message
	}
	if was.StartTime.IsZero() {
		next.StartTime = truncateTime(is.StartTime)
	}
	if was.QOSClass == "" {
		next.QOSClass = is.QOSClass
	}
	if len(is.HostIPs) > 0 && (addressGiven || !isLoopback(is.HostIP)) {
		next.HostIP, next.HostIPs = is.HostIP, is.HostIPs
	}
	if len(is.PodIPs) > 0 && (addressGiven || !isLoopback(is.PodIP)) {
		next.PodIP, next.PodIPs = is.PodIP, is.PodIPs
	}
	next.InitContainerStatuses, next.ContainerStatuses = truncateTimes(is.InitContainerStatuses), truncateTimes(is.ContainerStatuses)
	if !isMirror(seen) { // a mirror pod has no ephemeral containers
		next.EphemeralContainerStatuses = truncateTimes(is.EphemeralContainerStatuses)
	}
	next.ObservedGeneration = max(was.ObservedGeneration, mine.Generation)
	next.Conditions = podConditions(was.Conditions, is, mine.Generation, next.Phase)
	return next
}

// podConditions merges podd's own conditions into those of the pod. A transition time
// changes only with the status.
func podConditions(seen []v1.PodCondition, is *v1.PodStatus, generation int64, phase v1.PodPhase) []v1.PodCondition {
	all := slices.DeleteFunc(slices.Clone(seen), func(c v1.PodCondition) bool {
		return slices.Contains(removableConditions, c.Type) && !hasCondition(is.Conditions, c.Type)
	})
	for _, c := range is.Conditions {
		// Others also write this condition; podd writes it together with the final phase.
		ended := c.Type == v1.DisruptionTarget && c.Reason == v1.PodReasonTerminationByKubelet && isOver(phase)
		if !slices.Contains(ownConditions, c.Type) && !ended {
			continue
		}
		c.LastTransitionTime, c.LastProbeTime = c.LastTransitionTime.Rfc3339Copy(), metav1.Time{}
		i := slices.IndexFunc(all, func(s v1.PodCondition) bool { return s.Type == c.Type })
		if i < 0 {
			c.ObservedGeneration = generation
			all = append(all, c)
			continue
		}
		c.ObservedGeneration, c.LastProbeTime = max(generation, all[i].ObservedGeneration), all[i].LastProbeTime
		if all[i].Status == c.Status {
			c.LastTransitionTime = all[i].LastTransitionTime
		}
		all[i] = c
	}
	return all
}

func hasCondition(all []v1.PodCondition, t v1.PodConditionType) bool {
	return slices.ContainsFunc(all, func(c v1.PodCondition) bool { return c.Type == t })
}

// isRegression reports whether a status reverts a final state: the end of the pod, or of
// a container that must not restart.
func isRegression(seen *v1.Pod, is *v1.PodStatus) bool {
	was, spec := &seen.Status, &seen.Spec
	if isOver(was.Phase) && !isOver(is.Phase) {
		return true
	}
	never := func(v1.ContainerStatus) bool { return false }
	mayAgain := func(containers []v1.Container) func(v1.ContainerStatus) bool {
		return func(c v1.ContainerStatus) bool {
			i := slices.IndexFunc(containers, func(s v1.Container) bool { return s.Name == c.Name })
			return i >= 0 && manifest.RestartsAfter(spec, &containers[i], c.State.Terminated.ExitCode)
		}
	}
	return revives(was.InitContainerStatuses, is.InitContainerStatuses, mayAgain(spec.InitContainers)) ||
		revives(was.ContainerStatuses, is.ContainerStatuses, mayAgain(spec.Containers)) ||
		revives(was.EphemeralContainerStatuses, is.EphemeralContainerStatuses, never)
}

func revives(was, is []v1.ContainerStatus, may func(v1.ContainerStatus) bool) bool {
	return slices.ContainsFunc(was, func(w v1.ContainerStatus) bool {
		return w.State.Terminated != nil && !may(w) &&
			slices.ContainsFunc(is, func(i v1.ContainerStatus) bool { return i.Name == w.Name && i.State.Terminated == nil })
	})
}

func isOver(p v1.PodPhase) bool { return p == v1.PodSucceeded || p == v1.PodFailed }

func isAnyRunning(s *v1.PodStatus) bool {
	runs := func(c v1.ContainerStatus) bool { return c.State.Running != nil }
	return slices.ContainsFunc(s.InitContainerStatuses, runs) || slices.ContainsFunc(s.ContainerStatuses, runs)
}

// truncateTimes truncates the times to seconds, as the API server stores them. It
// modifies all.
func truncateTimes(all []v1.ContainerStatus) []v1.ContainerStatus {
	for i := range all {
		for _, s := range []*v1.ContainerState{&all[i].State, &all[i].LastTerminationState} {
			if s.Running != nil {
				s.Running.StartedAt = s.Running.StartedAt.Rfc3339Copy()
			}
			if t := s.Terminated; t != nil {
				t.StartedAt, t.FinishedAt = t.StartedAt.Rfc3339Copy(), t.FinishedAt.Rfc3339Copy()
			}
		}
	}
	return all
}

func truncateTime(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return new(t.Rfc3339Copy())
}
