package status

import v1 "k8s.io/api/core/v1"

// recall fills the status of a container that the runtime does not list: it
// has never been made, or its record is lost.
func (c *one) recall(s *v1.ContainerStatus) {
	s.State = c.waiting()
	end := c.recalledEnd()
	if end == nil {
		return
	}
	if c.lost() && !c.f.Terminating && c.role != ephemeral {
		s.RestartCount = max(s.RestartCount, c.previous.RestartCount+1)
	}
	if c.runsAgain(end.ExitCode) {
		s.LastTerminationState.Terminated = end
		return
	}
	p := c.previous.DeepCopy()
	s.State = v1.ContainerState{Terminated: end}
	s.ContainerID, s.ImageID = p.ContainerID, p.ImageID
	s.Resources, s.AllocatedResources = p.Resources, p.AllocatedResources
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

// recalledEnd is how a container ended that the runtime does not list; nil when
// it has never run.
func (c *one) recalledEnd() *v1.ContainerStateTerminated {
	p := &c.previous
	switch end := c.lastExit(); {
	case end != nil:
		return end
	case p.State.Terminated != nil:
		return p.State.Terminated.DeepCopy()
	case c.lost():
		return c.unknown("The container could not be located when the pod was deleted.  The container used to be Running")
	}
	return p.LastTerminationState.Terminated.DeepCopy()
}

// lost says that the container ran the last time and nobody saw it end.
func (c *one) lost() bool {
	return c.last == nil && c.facts.LastExit == nil && c.previous.State.Running != nil
}
