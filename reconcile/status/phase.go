package status

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// tally counts containers by what their state means for the pod.
type tally struct {
	pendingInit    int // init containers yet to complete
	failedInit     int
	pendingSidecar int // sidecars yet to start for the first time
	running        int // sidecars and regular containers
	waiting        int // those that never ran
	stopped        int // regular containers that ended, also those to run again
	succeeded      int // of them, those that ended with 0 and stay so
	initialized    bool
}

func (o *observed) count(s *v1.PodStatus) tally {
	t := tally{initialized: o.initialized}
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		if manifest.IsSidecar(&o.f.Pod.Spec.Spec.InitContainers[i]) {
			t.sidecar(c)
		} else {
			t.init(c)
		}
	}
	for i := range s.ContainerStatuses {
		t.regular(&s.ContainerStatuses[i])
	}
	return t
}

func (t *tally) init(c *v1.ContainerStatus) {
	end := c.State.Terminated
	if c.State.Waiting != nil {
		end = c.LastTerminationState.Terminated
	}
	switch {
	case end == nil:
		t.pendingInit++
	case end.ExitCode != 0:
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

func (t *tally) regular(c *v1.ContainerStatus) {
	switch {
	case c.State.Running != nil:
		t.running++
	case c.State.Terminated != nil:
		t.stopped++
		if c.State.Terminated.ExitCode == 0 {
			t.succeeded++
		}
	case c.LastTerminationState.Terminated != nil:
		t.stopped++
	default:
		t.waiting++
	}
}

// phase is an ordered table; the first match wins.
func (t tally) phase(policy v1.RestartPolicy) v1.PodPhase {
	switch {
	// An init container that may not run again: nothing else ever will.
	case t.failedInit > 0 && policy == v1.RestartPolicyNever:
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
	// All have stopped and are about to run again.
	case policy == v1.RestartPolicyAlways:
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	case policy == v1.RestartPolicyNever:
		return v1.PodFailed
	}
	return v1.PodRunning
}
