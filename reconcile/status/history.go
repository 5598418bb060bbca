package status

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// setFromHistory sets the status of a container that the runtime does not list, because the
// container was never created or its record was removed.
func (c *observedContainer) setFromHistory(s *v1.ContainerStatus) {
	s.State = c.waitingState()
	if c.hasCompletedUnseen() {
		s.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason:  completedReason,
			Message: "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally",
		}}
		last := c.lastExit()
		if last == nil {
			last = c.previous.LastTerminationState.Terminated.DeepCopy()
		}
		if last != nil && *last != *s.State.Terminated {
			s.LastTerminationState.Terminated = last
		}
		return
	}
	end := c.lastKnownExit()
	if end == nil {
		return
	}
	if c.isLost() && !c.f.Terminating && c.role != ephemeralRole {
		s.RestartCount = max(s.RestartCount, c.previous.RestartCount+1)
	}
	if c.willRestart(end.ExitCode) {
		s.LastTerminationState.Terminated = end
		return
	}
	p := c.previous.DeepCopy()
	s.State = v1.ContainerState{Terminated: end}
	s.ContainerID, s.ImageID = p.ContainerID, p.ImageID
	s.Resources, s.AllocatedResources = p.Resources, p.AllocatedResources
	s.User, s.StopSignal, s.AllocatedResourcesStatus = p.User, p.StopSignal, p.AllocatedResourcesStatus
	if p.Image != "" {
		s.Image = p.Image
	}
	if s.ContainerID == "" {
		s.ContainerID = end.ContainerID
	}
	if t := p.LastTerminationState.Terminated; t != nil && *t != *end {
		s.LastTerminationState = p.LastTerminationState
	}
}

// hasCompletedUnseen reports whether the container is an init container that has completed, although
// the runtime does not list it and podd did not observe its exit. This is certain if the runtime lists
// a regular container of the same sandbox, because that is created after all init containers have
// completed. Source: convertToAPIContainerStatuses (pkg/kubelet/kubelet_pods.go).
func (c *observedContainer) hasCompletedUnseen() bool {
	if c.role != initRole || manifest.IsSidecar(c.spec) || !c.initialized || c.facts.RestartsWithAll {
		return false
	}
	end := c.facts.LastExit
	if end == nil {
		end = c.previous.State.Terminated
	}
	return end == nil || end.ExitCode != 0
}

// lastKnownExit returns the last exit of a container that the runtime does not list, or
// nil if the container never ran.
func (c *observedContainer) lastKnownExit() *v1.ContainerStateTerminated {
	p := &c.previous
	switch end := c.lastExit(); {
	case end != nil:
		return end
	case p.State.Terminated != nil:
		return p.State.Terminated.DeepCopy()
	case c.isLost():
		return c.unknownExit("The container could not be located when the pod was deleted.  The container used to be Running")
	}
	return p.LastTerminationState.Terminated.DeepCopy()
}

// isLost reports whether the container ran according to the previous status, but podd did not
// observe its exit.
func (c *observedContainer) isLost() bool {
	return c.record == nil && c.facts.LastExit == nil && c.previous.State.Running != nil
}
