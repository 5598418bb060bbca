package status

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
	"podd/runtime"
)

// An observedContainer is a container of the pod with the facts about the container.
type observedContainer struct {
	*observedPod
	spec  *v1.Container
	role  role
	facts ContainerFacts
	// record is the newest record of the runtime, and previousRecord is the record before it. Each
	// is nil if there is no such record.
	record, previousRecord *runtime.Container
	// previous is the container's previous status; zero if there is none.
	previous v1.ContainerStatus
}

// A role is a list of containers in the pod spec: init, regular or ephemeral containers.
type role int

const (
	regularRole   role = iota
	initRole           // an init container or a sidecar
	ephemeralRole      // never restarted, and without effect on the status of the pod
)

// statuses returns the statuses of the containers in the order of specs.
func (o *observedPod) statuses(specs []v1.Container, previous []v1.ContainerStatus, r role) []v1.ContainerStatus {
	var statuses []v1.ContainerStatus
	for i := range specs {
		c := o.container(&specs[i], previous)
		c.role = r
		statuses = append(statuses, c.status())
	}
	return statuses
}

func (o *observedPod) container(spec *v1.Container, previous []v1.ContainerStatus) observedContainer {
	c := observedContainer{observedPod: o, spec: spec, facts: o.f.Containers[spec.Name]}
	records := o.containers[spec.Name]
	if len(records) > 0 {
		c.record = &records[0]
	}
	if len(records) > 1 {
		c.previousRecord = &records[1]
	}
	for _, p := range previous {
		if p.Name == spec.Name {
			c.previous = p
		}
	}
	return c
}

func (c *observedContainer) status() v1.ContainerStatus {
	s := v1.ContainerStatus{
		Name:         c.spec.Name,
		Image:        c.spec.Image,
		RestartCount: max(c.facts.Restarts, c.previous.RestartCount),
		VolumeMounts: c.volumeMounts(),
	}
	if c.record != nil {
		c.setFromRuntime(&s)
	} else {
		c.setFromHistory(&s)
	}
	if devices := c.deviceHealth(); devices != nil {
		s.AllocatedResourcesStatus = devices
	}
	if s.State.Terminated != nil && c.willRestart(s.State.Terminated.ExitCode) && c.facts.Waiting.Reason != "" {
		s.LastTerminationState = s.State
		s.State = c.waitingState()
	}
	c.setReady(&s)
	return s
}

// setFromRuntime sets the status of a container that the runtime lists.
func (c *observedContainer) setFromRuntime(s *v1.ContainerStatus) {
	s.RestartCount = int32(c.record.Restarts())
	s.ContainerID = c.containerID(c.record.ID)
	s.ImageID = c.record.ImageRef
	if image := c.record.ImageName(); image != "" {
		s.Image = image
	}
	c.setResources(s)
	s.User = containerUser(c.record.User)
	s.StopSignal = c.stopSignal()
	s.State = c.state(c.record)
	s.LastTerminationState = c.lastState()
}

// stopSignal returns the stop signal that the pod requests for the container, or nil if it requests
// none. The runtime uses it, because podd rejects the pod otherwise. By default, the kubelet has no
// stop signals. With the feature gate ContainerStopSignals, it also reports the signals of images.
func (c *observedContainer) stopSignal() *v1.Signal {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.StopSignal == nil {
		return nil
	}
	return new(*c.spec.Lifecycle.StopSignal)
}

// state returns the container state of a record.
func (c *observedContainer) state(r *runtime.Container) v1.ContainerState {
	switch {
	case r.State == runtime.Running && c.facts.IsStarting:
		return c.waitingState()
	case r.State == runtime.Running:
		var startedAt metav1.Time
		if p := c.previous.State.Running; p != nil && sameID(c.previous.ContainerID, r.ID) {
			startedAt = p.StartedAt
		}
		return v1.ContainerState{Running: &v1.ContainerStateRunning{
			StartedAt: timestamp(r.StartedAt, c.f.Now, startedAt),
		}}
	case r.State == runtime.Exited:
		return v1.ContainerState{Terminated: c.terminatedState(r)}
	case r.State == runtime.ExitCodeUnknown:
		return c.unreportedExit(r)
	case r.State == runtime.Unknown:
		t := c.unknownExit("The container could not be located when the pod was terminated")
		t.ContainerID = c.containerID(r.ID)
		return v1.ContainerState{Terminated: t}
	}
	return c.waitingState()
}

// lastState returns the last termination state. It reads this state from the record that precedes
// the newest record of the runtime. If there is no such record, it uses the recorded last exit. If
// there is none, it uses the previous status.
func (c *observedContainer) lastState() v1.ContainerState {
	if c.previousRecord != nil && hasEnded(c.previousRecord) {
		return c.state(c.previousRecord)
	}
	if e := c.lastExit(); e != nil && !c.isCurrentExit(e) {
		return v1.ContainerState{Terminated: e}
	}
	lastState := c.previous.State
	if lastState.Terminated == nil || sameID(c.previous.ContainerID, c.record.ID) {
		lastState = c.previous.LastTerminationState
	}
	if c.isCurrentExit(lastState.Terminated) {
		return v1.ContainerState{}
	}
	return *lastState.DeepCopy()
}

// isCurrentExit reports whether t is the exit of the newest record. This exit belongs in the state
// of the container, not in its last termination state. But the previous status may contain it as
// the last termination state, if the container waited to be restarted.
func (c *observedContainer) isCurrentExit(t *v1.ContainerStateTerminated) bool {
	return t != nil && hasEnded(c.record) && sameID(t.ContainerID, c.record.ID)
}

func hasEnded(r *runtime.Container) bool {
	return r.State == runtime.Exited || r.State == runtime.Unknown
}

// waitingState returns a waiting state with the recorded reason, or with the kubelet's
// default reason for a pod that is being set up.
func (c *observedContainer) waitingState() v1.ContainerState {
	w := v1.ContainerStateWaiting{Reason: c.facts.Waiting.Reason, Message: c.facts.Waiting.Message}
	if w.Reason == "" {
		w.Reason = containerCreating
		if len(c.f.Pod.Object.Spec.InitContainers) > 0 {
			w.Reason = podInitializing
		}
	}
	return v1.ContainerState{Waiting: &w}
}

// willRestart reports whether the container is restarted after an exit with this code.
func (c *observedContainer) willRestart(code int32) bool {
	if c.restartsNothing() || c.role == ephemeralRole {
		return false
	}
	if c.facts.RestartsWithAll {
		return true
	}
	if manifest.IsSidecar(c.spec) && c.role == initRole {
		return true
	}
	if c.role == initRole && code == 0 {
		return false
	}
	// A container with a waiting reason is started again even if its restart policy does not require
	// it, for example because its manifest changed.
	return c.facts.Waiting.Reason != "" || manifest.RestartsAfter(&c.f.Pod.Object.Spec, c.spec, code)
}

// containerID returns id with the runtime's name as its scheme. If the name is not known yet or id
// already has a scheme, containerID returns id.
func (c *observedContainer) containerID(id string) string {
	if id == "" || c.f.RuntimeName == "" || strings.Contains(id, "://") {
		return id
	}
	return c.f.RuntimeName + "://" + id
}

// sameID reports whether a and b are the same container ID, with or without a scheme.
func sameID(a, b string) bool {
	withoutScheme := func(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
	return withoutScheme(a) == withoutScheme(b)
}
