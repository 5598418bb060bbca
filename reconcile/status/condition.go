package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// conditions returns the conditions of the pod's status that other components set, followed by
// podd's conditions in the order of the kubelet.
func (o *observedPod) conditions(s *v1.PodStatus) []v1.PodCondition {
	var otherConditions []v1.PodCondition
	disruptionTarget := o.disruptionTargetConditions()
	for _, c := range o.f.Pod.Object.Status.Conditions {
		if !isOwnCondition(c.Type) && (c.Type != v1.DisruptionTarget || disruptionTarget == nil) {
			otherConditions = append(otherConditions, *c.DeepCopy())
		}
	}
	if o.isRejected() && o.f.Pod.Traits.FailsIfRejected && disruptionTarget == nil {
		return otherConditions // like the kubelet, podd sets no conditions of a rejected pod
	}
	containers := o.containersReadyCondition(s)
	ownConditions := append(append(o.resizeConditions(), disruptionTarget...),
		o.readyToStartCondition(),
		o.initializedCondition(s),
		podReadyCondition(o.f.Pod.Object.Spec.ReadinessGates, otherConditions, containers),
		containers,
		v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue},
	)
	ownConditions = append(ownConditions, o.restartingAllConditions(s)...)
	for i := range ownConditions {
		ownConditions[i].ObservedGeneration = o.f.Pod.Object.Generation
		o.setTransitionTime(&ownConditions[i])
	}
	return append(otherConditions, ownConditions...)
}

// disruptions maps the reasons of pods that the node terminated to the message of the kubelet's
// DisruptionTarget condition. "" means that the condition has the message of the pod's failure.
var disruptions = map[string]string{
	"Terminated": "",
	"Evicted":    "",
	"Preempting": "Pod was preempted by Kubelet to accommodate a critical pod.",
}

// disruptionTargetConditions returns the condition DisruptionTarget for a pod that the node
// terminated. By this condition, controllers distinguish such pods from pods that failed. It
// returns nil for other pods. As in the kubelet, a pod that was evicted because of its own storage
// limits does not have the condition.
func (o *observedPod) disruptionTargetConditions() []v1.PodCondition {
	failure := o.f.FailureReason
	if failure == nil || failure.Reason == "Evicted" && !o.f.IsPressureEviction || failure.Reason == "Preempting" && !o.f.Pod.Traits.HasStateAtSource {
		return nil
	}
	message, ok := disruptions[failure.Reason]
	if !ok {
		return nil
	}
	return []v1.PodCondition{newCondition(v1.DisruptionTarget, true, v1.PodReasonTerminationByKubelet, cmp.Or(message, failure.Message))}
}

// restartingAllConditions returns the condition that is true while all containers of a pod are
// stopped to be restarted. It returns nil for a pod without a rule RestartAllContainers.
func (o *observedPod) restartingAllConditions(s *v1.PodStatus) []v1.PodCondition {
	if !manifest.HasRestartAll(&o.f.Pod.Object.Spec) {
		return nil
	}
	c := newCondition(v1.AllContainersRestarting, false, "", "")
	switch {
	case s.Phase == v1.PodSucceeded:
		c.Reason = "PodCompleted"
	case s.Phase == v1.PodFailed:
		c.Reason = "PodFailed"
	case o.f.IsRestartingAll:
		c = newCondition(v1.AllContainersRestarting, true, "RestartAllContainersStarted", "container exited with restart policy rule")
	}
	return []v1.PodCondition{c}
}

func isOwnCondition(t v1.PodConditionType) bool {
	switch t {
	case v1.PodResizePending, v1.PodResizeInProgress, v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled, v1.AllContainersRestarting:
		return true
	}
	return false
}

// setTransitionTime sets the last transition time of c. If the previous status has the
// condition with the same status, its time is kept; otherwise the time is now.
func (o *observedPod) setTransitionTime(c *v1.PodCondition) {
	c.LastTransitionTime = wholeSecond(o.f.Now)
	if o.f.Previous == nil {
		return
	}
	for _, p := range o.f.Previous.Conditions {
		if p.Type == c.Type && p.Status == c.Status && !p.LastTransitionTime.IsZero() {
			c.LastTransitionTime = wholeSecond(p.LastTransitionTime.Time)
		}
	}
}

// readyToStartCondition returns a condition that is true while the pod has a sandbox in which
// containers can start.
func (o *observedPod) readyToStartCondition() v1.PodCondition {
	if message := o.whySandboxNotReady(); message != "" {
		return newCondition(v1.PodReadyToStartContainers, false, "PodSandboxNotReady", message)
	}
	return newCondition(v1.PodReadyToStartContainers, true, "", "")
}

// whySandboxNotReady returns why no container can start in the pod's sandbox, or "" if it can. The
// order and the messages are those of the kubelet (PodSandboxChanged in pkg/kubelet/kuberuntime/util).
// The kubelet also has a message for a sandbox with the other network mode. In podd, such a sandbox
// has another hash, so that it belongs to another version of the pod.
func (o *observedPod) whySandboxNotReady() string {
	switch {
	case o.sandbox == nil:
		return "no pod sandbox exists"
	case o.readySandboxes > 1: // podd stops the older sandboxes before it starts containers in the newest
		return "multiple pod sandboxes are ready and need to be reconciled"
	case !o.sandbox.Ready:
		return "pod sandbox is not ready"
	case !o.f.Pod.Object.Spec.HostNetwork && len(o.sandbox.IPs) == 0:
		return "pod sandbox has no IP address"
	}
	return ""
}

// initializedCondition returns a condition that is true once every init container has
// completed and every sidecar has started. It stays true while sidecars or all containers restart.
func (o *observedPod) initializedCondition(s *v1.PodStatus) v1.PodCondition {
	specs := o.f.Pod.Object.Spec.InitContainers
	var incomplete []string
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		done := c.Ready
		if manifest.IsSidecar(&specs[i]) {
			done = *c.Started
		}
		if !done {
			incomplete = append(incomplete, c.Name)
		}
	}
	switch {
	case len(specs) > 0 && s.InitContainerStatuses == nil:
		return newCondition(v1.PodInitialized, false, "UnknownContainerStatuses", "")
	case s.Phase == v1.PodSucceeded:
		return newCondition(v1.PodInitialized, true, "PodCompleted", "")
	case len(incomplete) == 0 || anyStarted(s.ContainerStatuses) || manifest.HasRestartAll(&o.f.Pod.Object.Spec) && o.wasInitialized():
		return newCondition(v1.PodInitialized, true, "", "")
	}
	return newCondition(v1.PodInitialized, false, "ContainersNotInitialized",
		"containers with incomplete status: "+names(incomplete))
}

// wasInitialized reports whether the previous status has the condition Initialized.
func (o *observedPod) wasInitialized() bool {
	return o.f.Previous != nil && slices.ContainsFunc(o.f.Previous.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodInitialized && c.Status == v1.ConditionTrue
	})
}

func anyStarted(list []v1.ContainerStatus) bool {
	for i := range list {
		if list[i].State.Waiting == nil {
			return true
		}
	}
	return false
}

func (o *observedPod) containersReadyCondition(s *v1.PodStatus) v1.PodCondition {
	var unready []string
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		if manifest.IsSidecar(&o.f.Pod.Object.Spec.InitContainers[i]) && !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	for i := range s.ContainerStatuses {
		if c := &s.ContainerStatuses[i]; !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	switch {
	case s.Phase == v1.PodSucceeded:
		return newCondition(v1.ContainersReady, false, "PodCompleted", "")
	case s.Phase == v1.PodFailed:
		return newCondition(v1.ContainersReady, false, "PodFailed", "")
	case len(unready) > 0:
		return newCondition(v1.ContainersReady, false, "ContainersNotReady",
			"containers with unready status: "+names(unready))
	}
	return newCondition(v1.ContainersReady, true, "", "")
}

// podReadyCondition returns a condition that is true if ContainersReady is true and the condition
// of every readiness gate is true. otherConditions contains the conditions that other components set.
func podReadyCondition(gates []v1.PodReadinessGate, otherConditions []v1.PodCondition, containers v1.PodCondition) v1.PodCondition {
	condition := containers
	condition.Type = v1.PodReady
	if containers.Status != v1.ConditionTrue {
		return condition
	}
	var unready []string
	for _, gate := range gates {
		if message := gateMessage(gate.ConditionType, otherConditions); message != "" {
			unready = append(unready, message)
		}
	}
	if len(unready) == 0 {
		return condition
	}
	return newCondition(v1.PodReady, false, "ReadinessGatesNotReady", strings.Join(unready, ", "))
}

// gateMessage returns why a readiness gate is not ready, or "" if it is.
func gateMessage(gate v1.PodConditionType, conditions []v1.PodCondition) string {
	for _, c := range conditions {
		if c.Type != gate {
			continue
		}
		if c.Status == v1.ConditionTrue {
			return ""
		}
		return fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate, c.Status)
	}
	return fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate)
}

func names(list []string) string { return "[" + strings.Join(list, " ") + "]" }

func newCondition(t v1.PodConditionType, ok bool, reason, message string) v1.PodCondition {
	status := v1.ConditionFalse
	if ok {
		status = v1.ConditionTrue
	}
	return v1.PodCondition{Type: t, Status: status, Reason: reason, Message: message}
}
