package status

import (
	"cmp"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// conditions are those of the pod that others set, then ours in the order every
// kubelet writes them.
func (o *observed) conditions(s *v1.PodStatus) []v1.PodCondition {
	var all []v1.PodCondition
	evicted := o.evicted()
	for _, c := range o.f.Pod.Spec.Status.Conditions {
		if !isOurs(c.Type) && (c.Type != v1.DisruptionTarget || evicted == nil) {
			all = append(all, *c.DeepCopy())
		}
	}
	if o.rejected() && o.ofCluster() && evicted == nil {
		return all // as a kubelet, which says no more of it
	}
	containers := o.containersReady(s)
	ours := append(append(o.resizeConditions(), evicted...),
		o.readyToStart(),
		o.initializedCondition(s),
		podReady(o.f.Pod.Spec.Spec.ReadinessGates, all, containers),
		containers,
		v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue},
	)
	for i := range ours {
		ours[i].ObservedGeneration = o.f.Pod.Spec.Generation
		o.stamp(&ours[i])
	}
	return append(all, ours...)
}

func (o *observed) ofCluster() bool { return o.f.Pod.Origin.Kind == manifest.KindAPI }

// disruptions are the reasons of pods that the node did not go on running, and what
// a kubelet tells of them; "" for the pod's own message.
var disruptions = map[string]string{
	"Terminated": "",
	"Evicted":    "",
	"Preempting": "Pod was preempted by Kubelet to accommodate a critical pod.",
}

// evicted is the condition by which controllers tell such pods from those that
// failed; none for others, and for those of no cluster but when the machine goes
// down.
func (o *observed) evicted() []v1.PodCondition {
	failed := o.f.Failed
	if failed == nil || !o.ofCluster() && failed.Reason != "Terminated" {
		return nil
	}
	message, disrupted := disruptions[failed.Reason]
	if !disrupted {
		return nil
	}
	return []v1.PodCondition{condition(v1.DisruptionTarget, true, v1.PodReasonTerminationByKubelet, cmp.Or(message, failed.Message))}
}

func isOurs(t v1.PodConditionType) bool {
	switch t {
	case v1.PodResizePending, v1.PodResizeInProgress, v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled:
		return true
	}
	return false
}

// stamp dates a condition: from now on, or since when it has had this status.
func (o *observed) stamp(c *v1.PodCondition) {
	c.LastTransitionTime = seconds(o.f.Now)
	if o.f.Previous == nil {
		return
	}
	for _, p := range o.f.Previous.Conditions {
		if p.Type == c.Type && p.Status == c.Status && !p.LastTransitionTime.IsZero() {
			c.LastTransitionTime = seconds(p.LastTransitionTime.Time)
		}
	}
}

func (o *observed) readyToStart() v1.PodCondition {
	b := o.sandbox
	ready := b != nil && b.Ready && (o.f.Pod.Spec.Spec.HostNetwork || len(b.IPs) > 0)
	return condition(v1.PodReadyToStartContainers, ready, "", "")
}

// initializedCondition is true once every init container has completed and
// every sidecar has started, and stays true while sidecars restart.
func (o *observed) initializedCondition(s *v1.PodStatus) v1.PodCondition {
	specs := o.f.Pod.Spec.Spec.InitContainers
	var open []string
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		done := c.Ready
		if manifest.IsSidecar(&specs[i]) {
			done = *c.Started
		}
		if !done {
			open = append(open, c.Name)
		}
	}
	switch {
	case len(specs) > 0 && s.InitContainerStatuses == nil:
		return condition(v1.PodInitialized, false, "UnknownContainerStatuses", "")
	case s.Phase == v1.PodSucceeded:
		return condition(v1.PodInitialized, true, "PodCompleted", "")
	case len(open) == 0 || anyRan(s.ContainerStatuses):
		return condition(v1.PodInitialized, true, "", "")
	}
	return condition(v1.PodInitialized, false, "ContainersNotInitialized",
		"containers with incomplete status: "+names(open))
}

func anyRan(list []v1.ContainerStatus) bool {
	for i := range list {
		if list[i].State.Waiting == nil {
			return true
		}
	}
	return false
}

func (o *observed) containersReady(s *v1.PodStatus) v1.PodCondition {
	var unready []string
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		if manifest.IsSidecar(&o.f.Pod.Spec.Spec.InitContainers[i]) && !c.Ready {
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
		return condition(v1.ContainersReady, false, "PodCompleted", "")
	case s.Phase == v1.PodFailed:
		return condition(v1.ContainersReady, false, "PodFailed", "")
	case len(unready) > 0:
		return condition(v1.ContainersReady, false, "ContainersNotReady",
			"containers with unready status: "+names(unready))
	}
	return condition(v1.ContainersReady, true, "", "")
}

// podReady is ContainersReady and every readiness gate.
func podReady(gates []v1.PodReadinessGate, others []v1.PodCondition, containers v1.PodCondition) v1.PodCondition {
	ready := containers
	ready.Type = v1.PodReady
	if containers.Status != v1.ConditionTrue {
		return ready
	}
	var closed []string
	for _, gate := range gates {
		if text := gateClosed(gate.ConditionType, others); text != "" {
			closed = append(closed, text)
		}
	}
	if len(closed) == 0 {
		return ready
	}
	return condition(v1.PodReady, false, "ReadinessGatesNotReady", strings.Join(closed, ", "))
}

// gateClosed says why, or "".
func gateClosed(gate v1.PodConditionType, conditions []v1.PodCondition) string {
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

func condition(t v1.PodConditionType, is bool, reason, message string) v1.PodCondition {
	status := v1.ConditionFalse
	if is {
		status = v1.ConditionTrue
	}
	return v1.PodCondition{Type: t, Status: status, Reason: reason, Message: message}
}
