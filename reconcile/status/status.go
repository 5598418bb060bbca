package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
)

// Of is the pod's status by the facts.
func Of(f Facts) v1.PodStatus {
	o := observe(&f)
	s := o.status()
	if o.ended == "" && sticks(&s) {
		// By these facts the pod has just ended. What would have been started
		// again until now stays as it is.
		o.ended = s.Phase
		s = o.status()
	}
	return s
}

func (o *observed) status() v1.PodStatus {
	f := o.f
	s := v1.PodStatus{
		ObservedGeneration: f.Pod.Spec.Generation,
		QOSClass:           manifest.QoS(f.Pod.Spec),
		StartTime:          startTime(f),
	}
	if !o.rejected() {
		spec := &f.Pod.Spec.Spec
		s.InitContainerStatuses = o.statuses(spec.InitContainers, previousInit(f.Previous), initial)
		s.ContainerStatuses = o.statuses(spec.Containers, previousRegular(f.Previous), regular)
		s.EphemeralContainerStatuses = o.statuses(ephemeralOf(spec), previousEphemeral(f.Previous), ephemeral)
	}
	o.addresses(&s)
	o.phase(&s)
	s.Conditions = o.conditions(&s)
	return s
}

// phase sets the phase with its reason and message, from the container
// statuses.
func (o *observed) phase(s *v1.PodStatus) {
	f := o.f
	s.Phase = o.count(s).phase()
	if f.Failed != nil {
		s.Phase, s.Reason, s.Message = v1.PodFailed, f.Failed.Reason, f.Failed.Message
	}
	// Whoever sees a terminal phase takes what the pod holds for free.
	if isTerminal(s.Phase) && anyRunning(s) {
		s.Phase = v1.PodPending
		if o.initialized {
			s.Phase = v1.PodRunning
		}
	}
	switch {
	case f.Failed != nil:
	case f.Finished != "":
		s.Phase = f.Finished
	case o.ended != "":
		s.Phase = o.ended
	case s.Phase == v1.PodPending && !o.ofCluster(): // there, events tell why
		s.Reason, s.Message = f.Waiting.Reason, f.Waiting.Message
	}
}

func isTerminal(p v1.PodPhase) bool { return p == v1.PodSucceeded || p == v1.PodFailed }

func anyRunning(s *v1.PodStatus) bool {
	return slices.ContainsFunc(s.InitContainerStatuses, isRunning) ||
		slices.ContainsFunc(s.ContainerStatuses, isRunning)
}

func isRunning(c v1.ContainerStatus) bool { return c.State.Running != nil }

func startTime(f *Facts) *metav1.Time {
	t := f.StartTime
	if t.IsZero() && f.Previous != nil && f.Previous.StartTime != nil {
		t = f.Previous.StartTime.Time
	}
	if t.IsZero() {
		t = f.Now
	}
	s := seconds(t)
	return &s
}

func previousInit(p *v1.PodStatus) []v1.ContainerStatus {
	if p == nil {
		return nil
	}
	return p.InitContainerStatuses
}

func previousRegular(p *v1.PodStatus) []v1.ContainerStatus {
	if p == nil {
		return nil
	}
	return p.ContainerStatuses
}

func previousEphemeral(p *v1.PodStatus) []v1.ContainerStatus {
	if p == nil {
		return nil
	}
	return p.EphemeralContainerStatuses
}

// ephemeralOf are a pod's ephemeral containers as any others.
func ephemeralOf(spec *v1.PodSpec) []v1.Container {
	var all []v1.Container
	for i := range spec.EphemeralContainers {
		all = append(all, v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}
