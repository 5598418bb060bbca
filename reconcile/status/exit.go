package status

import (
	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// maxMessages is the most bytes that the termination messages of one pod have
// together; each container gets an equal part.
const maxMessages = 12 << 10

// exit is the end that a record tells of.
func (c *one) exit(r *runtime.Container) *v1.ContainerStateTerminated {
	t := &v1.ContainerStateTerminated{
		ExitCode:    r.ExitCode,
		Reason:      r.Reason,
		Message:     c.cut(Message(r.Message, c.f.Said[r.ID])),
		ContainerID: c.containerID(r.ID),
	}
	if t.Reason == "" {
		t.Reason = Error
		if r.ExitCode == 0 {
			t.Reason = Completed
		}
	}
	var before v1.ContainerStateTerminated
	for _, state := range []v1.ContainerState{c.previous.LastTerminationState, c.previous.State} {
		if p := state.Terminated; p != nil && p.ContainerID == t.ContainerID {
			before = *p
		}
	}
	t.StartedAt = moment(r.StartedAt, c.f.Now, before.StartedAt)
	t.FinishedAt = moment(r.FinishedAt, c.f.Now, before.FinishedAt)
	return t
}

// Message is what the runtime says of an end, then what the container said of it.
func Message(runtime, container string) string {
	if runtime == "" || container == "" {
		return runtime + container
	}
	return runtime + ": " + container
}

// lastExit is the remembered end in a status's form; nil when there is none.
func (c *one) lastExit() *v1.ContainerStateTerminated {
	t := c.facts.LastExit.DeepCopy()
	if t == nil {
		return nil
	}
	t.ContainerID = c.containerID(t.ContainerID)
	t.Message = c.cut(t.Message)
	t.StartedAt, t.FinishedAt = seconds(t.StartedAt.Time), seconds(t.FinishedAt.Time)
	return t
}

// unknown is the end of a container that nobody saw; the code stands for some
// failure.
func (c *one) unknown(message string) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: 137,
		Reason:   ContainerStatusUnknown,
		Message:  c.cut(message),
	}
}

func (c *one) cut(message string) string {
	spec := &c.f.Pod.Spec.Spec
	n := maxMessages / max(1, len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers))
	return cutText(message, n)
}
