package status

import (
	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// maxMessageBytesPerPod is the maximum total length in bytes of the termination messages of a
// pod. Each container gets an equal part, as with the kubelet.
const maxMessageBytesPerPod = 12 << 10

// terminatedState returns the terminated state of a record.
func (c *observedContainer) terminatedState(r *runtime.Container) *v1.ContainerStateTerminated {
	t := &v1.ContainerStateTerminated{
		ExitCode:    r.ExitCode,
		Reason:      r.Reason,
		Message:     c.truncateMessage(JoinMessages(r.Message, c.f.TerminationMessages[r.ID])),
		ContainerID: c.containerID(r.ID),
	}
	if t.Reason == "" {
		t.Reason = errorReason
		if r.ExitCode == 0 {
			t.Reason = completedReason
		}
	}
	var previous v1.ContainerStateTerminated
	for _, state := range []v1.ContainerState{c.previous.LastTerminationState, c.previous.State} {
		if p := state.Terminated; p != nil && p.ContainerID == t.ContainerID {
			previous = *p
		}
	}
	t.StartedAt = timestamp(r.StartedAt, c.f.Now, previous.StartedAt)
	t.FinishedAt = timestamp(r.FinishedAt, c.f.Now, previous.FinishedAt)
	return t
}

// JoinMessages joins the runtime's message about an exit and the container's termination
// message. Both may be empty.
func JoinMessages(runtime, container string) string {
	if runtime == "" || container == "" {
		return runtime + container
	}
	return runtime + ": " + container
}

// lastExit returns the recorded last exit in the form of a status, or nil.
func (c *observedContainer) lastExit() *v1.ContainerStateTerminated {
	t := c.facts.LastExit.DeepCopy()
	if t == nil {
		return nil
	}
	t.ContainerID = c.containerID(t.ContainerID)
	t.Message = c.truncateMessage(t.Message)
	t.StartedAt, t.FinishedAt = wholeSecond(t.StartedAt.Time), wholeSecond(t.FinishedAt.Time)
	return t
}

// LostExitCode is the exit code of a container with an unobserved exit, as in the kubelet.
const LostExitCode = 137

// unknownExit returns the terminated state of a container with an unobserved exit.
func (c *observedContainer) unknownExit(message string) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: LostExitCode,
		Reason:   ContainerStatusUnknown,
		Message:  c.truncateMessage(message),
	}
}

// unreportedExit returns the state of a container that has exited if the runtime has not reported
// the exit code. The result is Terminated only if the pod has finished without this exit code,
// because a container must not leave the state Terminated. Otherwise, if a waiting reason is
// recorded, the result is Waiting. Without a reason, a container whose previous state is Running
// stays Running, and the state of any other container is Waiting.
func (c *observedContainer) unreportedExit(r *runtime.Container) v1.ContainerState {
	runningState := c.previous.State.Running
	switch {
	case c.f.FailureReason != nil || c.f.FinalPhase != "":
		t := c.unknownExit("The container could not be located when the pod was terminated")
		t.ContainerID = c.containerID(r.ID)
		return v1.ContainerState{Terminated: t}
	case c.facts.Waiting.Reason != "":
		return c.waitingState()
	case runningState != nil && sameID(c.previous.ContainerID, r.ID):
		return v1.ContainerState{Running: runningState.DeepCopy()}
	}
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{
		Reason: ContainerStatusUnknown, Message: "The runtime has not reported how the container exited: " + r.Message,
	}}
}

// isUnreported reports whether a container waits for its exit to be reported.
func isUnreported(s *v1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == ContainerStatusUnknown
}

func (c *observedContainer) truncateMessage(message string) string {
	spec := &c.f.Pod.Object.Spec
	n := maxMessageBytesPerPod / max(1, len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers))
	return truncate(message, n)
}
