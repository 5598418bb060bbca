package status

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
	"podd/runtime"
)

// one is a container with all that is known of it.
type one struct {
	*observed
	spec  *v1.Container
	role  role
	facts ContainerFacts
	// last and before are its newest records; nil when there are none.
	last, before *runtime.Container
	// previous is its last status; the zero value when there is none.
	previous v1.ContainerStatus
}

// role is what a container is in its pod.
type role int

const (
	regular   role = iota
	initial        // an init container, sidecars among them
	ephemeral      // it is never started again, and means nothing for the pod
)

// statuses are those of the containers, in their order.
func (o *observed) statuses(specs []v1.Container, previous []v1.ContainerStatus, r role) []v1.ContainerStatus {
	var all []v1.ContainerStatus
	for i := range specs {
		c := o.container(&specs[i], previous)
		c.role = r
		all = append(all, c.status())
	}
	return all
}

func (o *observed) container(spec *v1.Container, previous []v1.ContainerStatus) one {
	c := one{observed: o, spec: spec, facts: o.f.Containers[spec.Name]}
	records := o.records[spec.Name]
	if len(records) > 0 {
		c.last = &records[0]
	}
	if len(records) > 1 {
		c.before = &records[1]
	}
	for _, p := range previous {
		if p.Name == spec.Name {
			c.previous = p
		}
	}
	return c
}

func (c *one) status() v1.ContainerStatus {
	s := v1.ContainerStatus{
		Name:         c.spec.Name,
		Image:        c.spec.Image,
		RestartCount: max(c.facts.Restarts, c.previous.RestartCount),
		VolumeMounts: c.volumeMounts(),
	}
	if c.last != nil {
		c.describe(&s)
	} else {
		c.recall(&s)
	}
	if s.State.Terminated != nil && c.runsAgain(s.State.Terminated.ExitCode) && c.facts.Waiting.Reason != "" {
		s.LastTerminationState = s.State
		s.State = c.waiting()
	}
	c.probe(&s)
	return s
}

// describe fills the status from the newest record.
func (c *one) describe(s *v1.ContainerStatus) {
	s.RestartCount = int32(c.last.Attempt)
	s.ContainerID = c.containerID(c.last.ID)
	s.ImageID = c.last.ImageRef
	if c.last.Image != "" {
		s.Image = c.last.Image
	}
	c.resources(s)
	s.State = c.state(c.last)
	s.LastTerminationState = c.lastState()
}

// state is what a record says of its container.
func (c *one) state(r *runtime.Container) v1.ContainerState {
	switch {
	case r.State == runtime.Running && c.facts.Starting:
		return c.waiting()
	case r.State == runtime.Running:
		var before metav1.Time
		if p := c.previous.State.Running; p != nil && sameID(c.previous.ContainerID, r.ID) {
			before = p.StartedAt
		}
		return v1.ContainerState{Running: &v1.ContainerStateRunning{
			StartedAt: moment(r.StartedAt, c.f.Now, before),
		}}
	case r.State == runtime.Exited:
		return v1.ContainerState{Terminated: c.exit(r)}
	case r.State == runtime.Unknown:
		t := c.unknown("The container could not be located when the pod was terminated")
		t.ContainerID = c.containerID(r.ID)
		return v1.ContainerState{Terminated: t}
	}
	return c.waiting()
}

// lastState is the end before the present state: of the record before, else as
// remembered, else as said the last time.
func (c *one) lastState() v1.ContainerState {
	if c.before != nil && hasEnded(c.before) {
		return c.state(c.before)
	}
	if e := c.lastExit(); e != nil && !c.isOwnEnd(e) {
		return v1.ContainerState{Terminated: e}
	}
	last := c.previous.State
	if last.Terminated == nil || sameID(c.previous.ContainerID, c.last.ID) {
		last = c.previous.LastTerminationState
	}
	if c.isOwnEnd(last.Terminated) {
		return v1.ContainerState{}
	}
	return *last.DeepCopy()
}

// isOwnEnd: the newest record's end is its state and not the one before; a
// status has it as the one before while the container waits.
func (c *one) isOwnEnd(t *v1.ContainerStateTerminated) bool {
	return t != nil && hasEnded(c.last) && sameID(t.ContainerID, c.last.ID)
}

func hasEnded(r *runtime.Container) bool {
	return r.State == runtime.Exited || r.State == runtime.Unknown
}

// waiting is why the container does not run: what is known, or the default of
// a pod that is still being set up.
func (c *one) waiting() v1.ContainerState {
	w := v1.ContainerStateWaiting{Reason: c.facts.Waiting.Reason, Message: c.facts.Waiting.Message}
	if w.Reason == "" {
		w.Reason = ContainerCreating
		if len(c.f.Pod.Spec.Spec.InitContainers) > 0 {
			w.Reason = PodInitializing
		}
	}
	return v1.ContainerState{Waiting: &w}
}

// runsAgain says that the container is started again after such an end.
func (c *one) runsAgain(code int32) bool {
	if c.over() || c.role == ephemeral {
		return false
	}
	if manifest.IsSidecar(c.spec) && c.role == initial {
		return true
	}
	if c.role == initial && code == 0 {
		return false
	}
	return manifest.RestartsAfter(&c.f.Pod.Spec.Spec, c.spec, code)
}

// containerID puts the runtime's name before an id, once it is known.
func (c *one) containerID(id string) string {
	if id == "" || c.f.RuntimeName == "" || strings.Contains(id, "://") {
		return id
	}
	return c.f.RuntimeName + "://" + id
}

// sameID compares ids of which one or the other may lack the runtime's name.
func sameID(a, b string) bool {
	bare := func(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
	return bare(a) == bare(b)
}
