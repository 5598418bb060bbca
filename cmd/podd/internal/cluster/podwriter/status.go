package podwriter

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/mirror"
	"podd/manifest"
	"podd/manifest/condition"
)

// ownConditions are the pod conditions that the kubelet writes.
var ownConditions = []v1.PodConditionType{
	v1.PodResizePending, v1.PodResizeInProgress, v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled, v1.AllContainersRestarting,
}

// removableConditions are the ownConditions that the kubelet removes when they no longer apply.
var removableConditions = []v1.PodConditionType{v1.PodResizePending, v1.PodResizeInProgress}

// mergePodStatus returns the status to store in the API server. local is the pod in the View, and
// remote the pod in the API server. The result is the status of local, except that two kinds of fields
// are taken from remote: fields that other clients write, and fields that may be set only once. If
// isAddressConfigured is false, mergePodStatus does not replace addresses in remote by loopback
// addresses, which other nodes cannot use.
func mergePodStatus(remote, local *v1.Pod, isAddressConfigured bool) *v1.PodStatus {
	stored, own := &remote.Status, local.Status.DeepCopy()
	next := stored.DeepCopy()
	switch {
	case manifest.IsTerminal(stored.Phase): // a final phase is never changed
	case manifest.IsTerminal(own.Phase) && isAnyRunning(own):
		// Keep the phase until all containers have terminated, because the scheduler considers the
		// resources of a pod free when the phase is final.
	default:
		next.Phase, next.Reason, next.Message = own.Phase, own.Reason, own.Message
	}
	if stored.StartTime.IsZero() {
		next.StartTime = truncateTime(own.StartTime)
	}
	if stored.QOSClass == "" {
		next.QOSClass = own.QOSClass
	}
	if len(own.HostIPs) > 0 && (isAddressConfigured || !isLoopback(own.HostIP)) {
		next.HostIP, next.HostIPs = own.HostIP, own.HostIPs
	}
	if len(own.PodIPs) > 0 && (isAddressConfigured || !isLoopback(own.PodIP)) {
		next.PodIP, next.PodIPs = own.PodIP, own.PodIPs
	}
	next.InitContainerStatuses, next.ContainerStatuses = truncateTimes(own.InitContainerStatuses), truncateTimes(own.ContainerStatuses)
	if !mirror.IsMirror(remote) { // the mirror pod of a static pod has no ephemeral containers
		next.EphemeralContainerStatuses = truncateTimes(own.EphemeralContainerStatuses)
	}
	next.AllocatedResources, next.Resources = own.AllocatedResources, own.Resources
	next.ObservedGeneration = max(stored.ObservedGeneration, local.Generation)
	next.Conditions = mergePodConditions(stored.Conditions, own, local.Generation, next.Phase)
	return next
}

// mergePodConditions returns a copy of the conditions in stored. In the copy, each of the
// ownConditions in own is added or replaces the condition of the same type. The removableConditions
// that own does not contain are removed. The transition time of a condition changes only if its
// status changes.
func mergePodConditions(stored []v1.PodCondition, own *v1.PodStatus, generation int64, phase v1.PodPhase) []v1.PodCondition {
	merged := slices.DeleteFunc(slices.Clone(stored), func(c v1.PodCondition) bool {
		return slices.Contains(removableConditions, c.Type) && condition.Find(own.Conditions, c.Type) == nil
	})
	for _, c := range own.Conditions {
		// Other clients also write DisruptionTarget. podd writes this condition only if the
		// kubelet's reason is set and the phase is final.
		isTermination := c.Type == v1.DisruptionTarget && c.Reason == v1.PodReasonTerminationByKubelet && manifest.IsTerminal(phase)
		if !slices.Contains(ownConditions, c.Type) && !isTermination {
			continue
		}
		c.LastTransitionTime, c.LastProbeTime = c.LastTransitionTime.Rfc3339Copy(), metav1.Time{}
		i := slices.IndexFunc(merged, func(s v1.PodCondition) bool { return s.Type == c.Type })
		if i < 0 {
			c.ObservedGeneration = generation
			merged = append(merged, c)
			continue
		}
		c.ObservedGeneration, c.LastProbeTime = max(generation, merged[i].ObservedGeneration), merged[i].LastProbeTime
		if merged[i].Status == c.Status {
			c.LastTransitionTime = merged[i].LastTransitionTime
		}
		merged[i] = c
	}
	return merged
}

// isRegression reports whether the status own would revert a final state of remote, the pod in the API
// server: the termination of the pod, or the termination of a container that must not restart.
func isRegression(remote *v1.Pod, own *v1.PodStatus) bool {
	stored, spec := &remote.Status, &remote.Spec
	if manifest.IsTerminal(stored.Phase) && !manifest.IsTerminal(own.Phase) {
		return true
	}
	never := func(v1.ContainerStatus) bool { return false }
	restartAll := manifest.HasRestartAll(spec) // if true, even completed containers may restart
	mayRestart := func(containers []v1.Container) func(v1.ContainerStatus) bool {
		return func(c v1.ContainerStatus) bool {
			i := slices.IndexFunc(containers, func(s v1.Container) bool { return s.Name == c.Name })
			return i >= 0 && (restartAll || manifest.RestartsAfter(spec, &containers[i], c.State.Terminated.ExitCode))
		}
	}
	return wouldRestartFinished(stored.InitContainerStatuses, own.InitContainerStatuses, mayRestart(spec.InitContainers)) ||
		wouldRestartFinished(stored.ContainerStatuses, own.ContainerStatuses, mayRestart(spec.Containers)) ||
		wouldRestartFinished(stored.EphemeralContainerStatuses, own.EphemeralContainerStatuses, never)
}

// wouldRestartFinished compares two versions of container statuses. It reports whether a container
// has terminated in stored and not in own, although the container must not restart.
func wouldRestartFinished(stored, own []v1.ContainerStatus, mayRestart func(v1.ContainerStatus) bool) bool {
	return slices.ContainsFunc(stored, func(o v1.ContainerStatus) bool {
		return o.State.Terminated != nil && !mayRestart(o) &&
			slices.ContainsFunc(own, func(c v1.ContainerStatus) bool { return c.Name == o.Name && c.State.Terminated == nil })
	})
}

// isAnyRunning reports whether an init or regular container is running.
func isAnyRunning(s *v1.PodStatus) bool {
	isRunning := func(c v1.ContainerStatus) bool { return c.State.Running != nil }
	return slices.ContainsFunc(s.InitContainerStatuses, isRunning) || slices.ContainsFunc(s.ContainerStatuses, isRunning)
}

// isLoopback reports whether text is a loopback address.
func isLoopback(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.IsLoopback()
}

// truncateTimes truncates all times in the statuses to seconds, because the API server stores
// seconds. It modifies the statuses and returns them.
func truncateTimes(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	for i := range statuses {
		for _, s := range []*v1.ContainerState{&statuses[i].State, &statuses[i].LastTerminationState} {
			if s.Running != nil {
				s.Running.StartedAt = s.Running.StartedAt.Rfc3339Copy()
			}
			if t := s.Terminated; t != nil {
				t.StartedAt, t.FinishedAt = t.StartedAt.Rfc3339Copy(), t.FinishedAt.Rfc3339Copy()
			}
		}
	}
	return statuses
}

// truncateTime returns t truncated to seconds, or nil if t is nil.
func truncateTime(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return new(t.Rfc3339Copy())
}
