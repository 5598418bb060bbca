package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
	"podd/runtime"
)

// Compute returns the status of the pod.
func Compute(f Facts) v1.PodStatus {
	o := observe(&f)
	s := o.status()
	if o.endPhase == "" && isFinal(&s) {
		// According to these facts the pod has just finished, so the containers that
		// would have been restarted keep their state.
		o.endPhase = s.Phase
		s = o.status()
	}
	return s
}

func (o *observedPod) status() v1.PodStatus {
	f := o.f
	s := v1.PodStatus{
		ObservedGeneration: f.Pod.Object.Generation,
		QOSClass:           manifest.QoS(f.Pod.Object),
		StartTime:          startTime(f),
	}
	if !o.isRejected() {
		spec := &f.Pod.Object.Spec
		s.InitContainerStatuses = o.statuses(spec.InitContainers, previousInitStatuses(f.Previous), initRole)
		s.ContainerStatuses = o.statuses(spec.Containers, previousRegularStatuses(f.Previous), regularRole)
		s.EphemeralContainerStatuses = o.statuses(ephemeralContainers(spec), previousEphemeralStatuses(f.Previous), ephemeralRole)
	}
	s.AllocatedResources, s.Resources = f.AllocatedResources.DeepCopy(), f.Resources.DeepCopy()
	o.setAddresses(&s)
	o.setPhase(&s)
	s.Conditions = o.conditions(&s)
	return s
}

// setPhase sets the phase, reason and message from the container statuses.
func (o *observedPod) setPhase(s *v1.PodStatus) {
	f := o.f
	s.Phase = o.count(s).phase()
	if f.FailureReason != nil {
		s.Phase, s.Reason, s.Message = v1.PodFailed, f.FailureReason.Reason, f.FailureReason.Message
	}
	// The phase is not terminal while a container runs, because consumers of a terminal phase
	// regard the pod's resources as free. It is also not terminal before podd has decided and recorded
	// that the pod has finished. Finally, it is not terminal if a container will be restarted although
	// its restart policy does not require it.
	if manifest.IsTerminal(s.Phase) && (f.IsUndecided || anyRunning(s) || o.mayRun() || f.FailureReason == nil && o.isRestarting(s)) {
		s.Phase = v1.PodPending
		if o.initialized {
			s.Phase = v1.PodRunning
		}
	}
	switch {
	case f.FailureReason != nil:
	case f.FinalPhase != "":
		s.Phase = f.FinalPhase
	case o.endPhase != "":
		s.Phase = o.endPhase
	case s.Phase == v1.PodPending && !o.f.Pod.Traits.HasStateAtSource: // omit the reason for a pod of a cluster, because a kubelet reports the reason in events only
		s.Reason, s.Message = f.Waiting.Reason, f.Waiting.Message
	}
}

func anyRunning(s *v1.PodStatus) bool {
	return slices.ContainsFunc(s.InitContainerStatuses, isRunning) ||
		slices.ContainsFunc(s.ContainerStatuses, isRunning)
}

// mayRun reports whether an init container, sidecar or regular container has the state Unknown in
// the runtime, so that it may still run.
func (o *observedPod) mayRun() bool {
	spec := &o.f.Pod.Object.Spec
	return slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c v1.Container) bool {
		records := o.containers[c.Name]
		return len(records) > 0 && records[0].State == runtime.Unknown
	})
}

// isRestarting reports whether an exited container will be started again for one of three reasons:
// a user requested its restart, its manifest changed, or all containers of the pod are restarted.
func (o *observedPod) isRestarting(s *v1.PodStatus) bool {
	return slices.ContainsFunc(slices.Concat(s.InitContainerStatuses, s.ContainerStatuses), func(c v1.ContainerStatus) bool {
		hasExited := c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
		return hasExited && c.State.Running == nil && (o.f.Containers[c.Name].Waiting.Reason != "" || o.f.Containers[c.Name].RestartsWithAll)
	})
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
	s := wholeSecond(t)
	return &s
}

func previousInitStatuses(p *v1.PodStatus) []v1.ContainerStatus {
	if p == nil {
		return nil
	}
	return p.InitContainerStatuses
}

func previousRegularStatuses(p *v1.PodStatus) []v1.ContainerStatus {
	if p == nil {
		return nil
	}
	return p.ContainerStatuses
}

func previousEphemeralStatuses(p *v1.PodStatus) []v1.ContainerStatus {
	if p == nil {
		return nil
	}
	return p.EphemeralContainerStatuses
}

// ephemeralContainers returns the ephemeral containers of spec as ordinary containers.
func ephemeralContainers(spec *v1.PodSpec) []v1.Container {
	var containers []v1.Container
	for i := range spec.EphemeralContainers {
		containers = append(containers, v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return containers
}
