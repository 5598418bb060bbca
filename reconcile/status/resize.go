package status

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// resizeConditions are there while what they tell is so, as the kubelet's.
func (o *observed) resizeConditions() []v1.PodCondition {
	var all []v1.PodCondition
	r := &o.f.Resize
	if r.Pending != (Reason{}) {
		all = append(all, condition(v1.PodResizePending, true, r.Pending.Reason, r.Pending.Message))
	}
	if r.InProgress {
		reason := ""
		if r.Failed != "" {
			reason = v1.PodReasonError
		}
		all = append(all, condition(v1.PodResizeInProgress, true, reason, r.Failed))
	}
	return all
}

// resources fills in what the container has and what it is given.
func (c *one) resources(s *v1.ContainerStatus) {
	s.Resources = c.specIn(c.f.Actual).Resources.DeepCopy()
	s.AllocatedResources = c.specIn(c.f.Allocated).Resources.Requests.DeepCopy()
}

// specIn is the container in another size of the pod, or as it is written.
func (c *one) specIn(p *manifest.Pod) *v1.Container {
	if p == nil {
		return c.spec
	}
	for _, list := range [][]v1.Container{p.Spec.Spec.InitContainers, p.Spec.Spec.Containers} {
		for i := range list {
			if list[i].Name == c.spec.Name {
				return &list[i]
			}
		}
	}
	return c.spec
}
