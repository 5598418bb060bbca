package status

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// resizeConditions returns the conditions of a resize. Like the kubelet, podd removes them when
// they are no longer true.
func (o *observedPod) resizeConditions() []v1.PodCondition {
	var conditions []v1.PodCondition
	r := &o.f.Resize
	if r.PendingReason != (Reason{}) {
		conditions = append(conditions, newCondition(v1.PodResizePending, true, r.PendingReason.Reason, r.PendingReason.Message))
	}
	if r.InProgress {
		reason := ""
		if r.FailureMessage != "" {
			reason = v1.PodReasonError
		}
		conditions = append(conditions, newCondition(v1.PodResizeInProgress, true, reason, r.FailureMessage))
	}
	return conditions
}

// setResources sets the actual and the allocated resources.
func (c *observedContainer) setResources(s *v1.ContainerStatus) {
	s.Resources = c.specIn(c.f.Actual).Resources.DeepCopy()
	s.AllocatedResources = c.specIn(c.f.Allocated).Resources.Requests.DeepCopy()
}

// specIn returns the container's spec in p, which is the pod with allocated or actual resources. If
// p is nil, specIn returns the desired spec.
func (c *observedContainer) specIn(p *manifest.Pod) *v1.Container {
	if p == nil {
		return c.spec
	}
	for _, list := range [][]v1.Container{p.Object.Spec.InitContainers, p.Object.Spec.Containers} {
		for i := range list {
			if list[i].Name == c.spec.Name {
				return &list[i]
			}
		}
	}
	return c.spec
}
