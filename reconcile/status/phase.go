package status

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// A tally counts containers by the effect of their state on the phase of the pod.
type tally struct {
	pendingInit    int // init containers that have not completed
	failedInit     int // init containers that failed and are not restarted
	pendingSidecar int // sidecars that have not started for the first time
	running        int // sidecars and regular containers that run, or whose exit was not reported yet
	waiting        int // sidecars and regular containers that never ran
	stopped        int // regular containers that exited, including containers that will be restarted
	notRestarted   int // stopped containers that are not restarted
	succeeded      int // stopped containers with exit code 0 that do not wait for a restart
	initialized    bool
}

// count counts the container statuses in s.
func (o *observedPod) count(s *v1.PodStatus) tally {
	t := tally{initialized: o.initialized}
	spec := &o.f.Pod.Object.Spec
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		if manifest.IsSidecar(&spec.InitContainers[i]) {
			t.addSidecar(c)
		} else {
			t.addInit(c, spec, &spec.InitContainers[i])
		}
	}
	for i := range s.ContainerStatuses {
		t.addRegular(&s.ContainerStatuses[i], spec, &spec.Containers[i])
	}
	return t
}

func (t *tally) addInit(c *v1.ContainerStatus, pod *v1.PodSpec, spec *v1.Container) {
	end := c.State.Terminated
	if c.State.Waiting != nil {
		end = c.LastTerminationState.Terminated
	}
	switch {
	case end == nil, isUnreported(c):
		t.pendingInit++
	case end.ExitCode != 0 && !manifest.RestartsAfter(pod, spec, end.ExitCode):
		t.failedInit++
	}
}

// addSidecar counts a sidecar. It does not count a stopped sidecar, because the sidecar is being
// restarted.
func (t *tally) addSidecar(c *v1.ContainerStatus) {
	switch {
	case isUnreported(c):
		t.running++
	case c.State.Running != nil:
		t.running++
		if c.Started == nil || !*c.Started {
			t.pendingSidecar++
		}
	case c.State.Waiting != nil && c.LastTerminationState.Terminated == nil:
		t.waiting++
		t.pendingSidecar++
	}
}

func (t *tally) addRegular(c *v1.ContainerStatus, pod *v1.PodSpec, spec *v1.Container) {
	switch {
	case c.State.Running != nil, isUnreported(c):
		t.running++
	case c.State.Terminated != nil:
		t.stopped++
		if c.State.Terminated.ExitCode == 0 {
			t.succeeded++
		}
		if !manifest.RestartsAfter(pod, spec, c.State.Terminated.ExitCode) {
			t.notRestarted++
		}
	case c.LastTerminationState.Terminated != nil:
		t.stopped++
		// A waiting container will be restarted, unless its restart policy and rules
		// exclude it.
		if manifest.EffectiveRestartPolicy(pod, spec) == v1.RestartPolicyNever && !manifest.RestartsAfter(pod, spec, c.LastTerminationState.Terminated.ExitCode) {
			t.notRestarted++
		}
	default:
		t.waiting++
	}
}

// phase returns the phase. The first case that applies determines the result.
func (t tally) phase() v1.PodPhase {
	switch {
	// If an init container failed and is not restarted, no later container is ever started.
	case t.failedInit > 0:
		return v1.PodFailed
	case t.pendingInit > 0:
		return v1.PodPending
	// Once the pod is initialized, a sidecar that restarts does not make it Pending.
	case t.pendingSidecar > 0 && !t.initialized:
		return v1.PodPending
	case t.waiting > 0:
		return v1.PodPending
	case t.running > 0:
		return v1.PodRunning
	case t.stopped == 0:
		return v1.PodPending
	// The pod is Running, because some stopped containers will be restarted.
	case t.stopped > t.notRestarted:
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	}
	return v1.PodFailed
}
