package status

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// tally counts containers by what their state means for the pod.
type tally struct {
	pendingInit    int // init containers yet to complete
	failedInit     int // init containers that failed and do not run again
	pendingSidecar int // sidecars yet to start for the first time
	running        int // sidecars and regular containers
	waiting        int // those that never ran
	stopped        int // regular containers that ended, also those to run again
	over           int // of them, those that do not run again
	succeeded      int // of the stopped ones, those that ended with 0 and stay so
	initialized    bool
}

func (o *observed) count(s *v1.PodStatus) tally {
	t := tally{initialized: o.initialized}
	spec := &o.f.Pod.Spec.Spec
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		if manifest.IsSidecar(&spec.InitContainers[i]) {
			t.sidecar(c)
		} else {
			t.init(c, spec, &spec.InitContainers[i])
		}
	}
	for i := range s.ContainerStatuses {
		t.regular(&s.ContainerStatuses[i], spec, &spec.Containers[i])
	}
	return t
}

func (t *tally) init(c *v1.ContainerStatus, pod *v1.PodSpec, spec *v1.Container) {
	end := c.State.Terminated
	if c.State.Waiting != nil {
		end = c.LastTerminationState.Terminated
	}
	switch {
	case end == nil:
		t.pendingInit++
	case end.ExitCode != 0 && !manifest.RestartsAfter(pod, spec, end.ExitCode):
		t.failedInit++
	}
}

// sidecar: one that ended is being started again and counts for nothing.
func (t *tally) sidecar(c *v1.ContainerStatus) {
	switch {
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

func (t *tally) regular(c *v1.ContainerStatus, pod *v1.PodSpec, spec *v1.Container) {
	switch {
	case c.State.Running != nil:
		t.running++
	case c.State.Terminated != nil:
		t.stopped++
		if c.State.Terminated.ExitCode == 0 {
			t.succeeded++
		}
		if !manifest.RestartsAfter(pod, spec, c.State.Terminated.ExitCode) {
			t.over++
		}
	case c.LastTerminationState.Terminated != nil:
		t.stopped++
		// It waits, and so is to run again unless nothing could make it.
		if manifest.RestartPolicyOf(pod, spec) == v1.RestartPolicyNever && !manifest.RestartsAfter(pod, spec, c.LastTerminationState.Terminated.ExitCode) {
			t.over++
		}
	default:
		t.waiting++
	}
}

// phase is an ordered table; the first match wins.
func (t tally) phase() v1.PodPhase {
	switch {
	// An init container that may not run again: nothing else ever will.
	case t.failedInit > 0:
		return v1.PodFailed
	case t.pendingInit > 0:
		return v1.PodPending
	// A sidecar that restarts does not put a pod back that has been set up.
	case t.pendingSidecar > 0 && !t.initialized:
		return v1.PodPending
	case t.waiting > 0:
		return v1.PodPending
	case t.running > 0:
		return v1.PodRunning
	case t.stopped == 0:
		return v1.PodPending
	// Some that have stopped are about to run again.
	case t.stopped > t.over:
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	}
	return v1.PodFailed
}
