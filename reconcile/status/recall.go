package status

import v1 "k8s.io/api/core/v1"

// setFromHistory sets the status of a container that the runtime does not list, because the
// container was never created or its record was removed.
func (c *observedContainer) setFromHistory(s *v1.ContainerStatus) {
	s.State = c.waitingState()
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
	s.User, s.AllocatedResourcesStatus = p.User, p.AllocatedResourcesStatus
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
