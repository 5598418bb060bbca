package table

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/condition"
)

// PodCells are the cells of a pod in a listing. They have the values that "kubectl get pods" prints.
type PodCells struct {
	Ready    string // such as "1/2"; counts regular containers and sidecars
	Status   string // such as "Running", "Init:0/1" or "CrashLoopBackOff"
	Restarts string // such as "4 (12s ago)"
	Age      string // such as "6m"; time since the creation or, if that is unknown, since the start
}

// NewPodCells returns the values that kubectl get pods prints for pod at the given time, with two
// differences. First, the reason of the pod is printed if it is more specific than the reasons of
// the containers (see hasSpecificReason). Second, a pod whose containers terminate because the pod
// was deleted remains Terminating. A pod that is being stopped must have a DeletionTimestamp.
func NewPodCells(pod *v1.Pod, now time.Time) PodCells {
	r := podSummary{pod: pod, status: string(pod.Status.Phase), total: len(pod.Spec.Containers)}
	if pod.Status.Reason != "" {
		r.status = pod.Status.Reason
	}
	if c := condition.Find(pod.Status.Conditions, v1.PodScheduled); c != nil && c.Reason == v1.PodReasonSchedulingGated {
		r.status = c.Reason
	}
	r.readInitContainers()
	if !r.isInitializing || condition.IsTrue(pod.Status.Conditions, v1.PodInitialized) {
		r.readContainers()
	}
	if r.hasSpecificReason() {
		r.status = pod.Status.Reason
	}
	r.readDeletion()
	return PodCells{
		Ready:    fmt.Sprintf("%d/%d", r.ready, r.total),
		Status:   r.status,
		Restarts: r.restartsText(now),
		Age:      podAge(pod, now),
	}
}

// A podSummary contains the values from which the cells of a pod are computed.
type podSummary struct {
	pod            *v1.Pod
	status         string
	ready, total   int
	isInitializing bool
	// restarts contains the restarts of all containers, and sidecars contains the restarts of the
	// sidecars. restarts includes restarts of init containers only until the initialization is
	// complete.
	restarts, sidecars restarts
}

type restarts struct {
	n    int
	last time.Time
}

func (r *restarts) add(c *v1.ContainerStatus) {
	r.n += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(r.last) {
		r.last = t.FinishedAt.Time
	}
}

// readInitContainers evaluates the init containers up to the first init container that has not
// completed. That container determines the status.
func (r *podSummary) readInitContainers() {
	isSidecar := map[string]bool{}
	for i := range r.pod.Spec.InitContainers {
		if c := &r.pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			isSidecar[c.Name] = true
			r.total++
		}
	}
	for i := range r.pod.Status.InitContainerStatuses {
		c := &r.pod.Status.InitContainerStatuses[i]
		r.restarts.add(c)
		if isSidecar[c.Name] {
			r.sidecars.add(c)
		}
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case t != nil && t.ExitCode == 0:
			continue
		case isSidecar[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				r.ready++
			}
			continue
		case t != nil:
			r.status = "Init:" + terminationReason(t)
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
			r.status = "Init:" + w.Reason
		default:
			r.status = fmt.Sprintf("Init:%d/%d", i, len(r.pod.Spec.InitContainers))
		}
		r.isInitializing = true
		return
	}
}

// readContainers evaluates the regular containers from the last to the first. If several containers
// have a reason, the status is the reason of the first of them.
func (r *podSummary) readContainers() {
	r.restarts = r.sidecars
	hasRunning := false
	for i := len(r.pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &r.pod.Status.ContainerStatuses[i]
		r.restarts.add(c)
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case w != nil && w.Reason != "":
			r.status = w.Reason
		case t != nil:
			r.status = terminationReason(t)
		case c.Ready && c.State.Running != nil:
			hasRunning = true
			r.ready++
		}
	}
	if r.status == "Completed" && hasRunning {
		r.status = "NotReady"
		if condition.IsTrue(r.pod.Status.Conditions, v1.PodReady) {
			r.status = "Running"
		}
	}
}

func terminationReason(t *v1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// hasSpecificReason reports whether the reason of the pod is more specific than the reasons of its
// containers. The reason of the pod is more specific in two cases: it states why the pod was
// stopped, or it states why the pod is not admitted while its containers wait to be created. If a
// pod waits for the network, the reason is in the status of its containers.
func (r *podSummary) hasSpecificReason() bool {
	switch reason := r.pod.Status.Reason; {
	case reason == "" || reason == "NetworkNotReady":
		return false
	case r.pod.Status.Phase != v1.PodPending:
		return true
	}
	waitsForCreation := func(c v1.ContainerStatus) bool {
		w := c.State.Waiting
		return w != nil && (w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing")
	}
	return !slices.ContainsFunc(r.pod.Status.InitContainerStatuses, func(c v1.ContainerStatus) bool { return !waitsForCreation(c) }) &&
		!slices.ContainsFunc(r.pod.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return !waitsForCreation(c) })
}

func (r *podSummary) readDeletion() {
	if r.pod.DeletionTimestamp == nil {
		return
	}
	switch phase := r.pod.Status.Phase; {
	case r.pod.Status.Reason == "NodeLost":
		r.status = "Unknown"
	case phase != v1.PodSucceeded && phase != v1.PodFailed || r.wasRunningWhenDeleted():
		r.status = "Terminating"
	}
}

// wasRunningWhenDeleted reports whether the pod was still running when it was deleted.
func (r *podSummary) wasRunningWhenDeleted() bool {
	endedLater := func(c v1.ContainerStatus) bool {
		t := c.State.Terminated
		return t != nil && t.FinishedAt.After(r.pod.DeletionTimestamp.Time)
	}
	return slices.ContainsFunc(r.pod.Status.InitContainerStatuses, endedLater) || slices.ContainsFunc(r.pod.Status.ContainerStatuses, endedLater)
}

func (r *podSummary) restartsText(now time.Time) string {
	if r.restarts.n == 0 || r.restarts.last.IsZero() {
		return strconv.Itoa(r.restarts.n)
	}
	return fmt.Sprintf("%d (%s ago)", r.restarts.n, formatAge(r.restarts.last, now))
}

// podAge returns the time since the creation of a pod or, if it has no creation
// timestamp, since its start.
func podAge(pod *v1.Pod, now time.Time) string {
	if pod.CreationTimestamp.IsZero() && pod.Status.StartTime != nil {
		return formatAge(pod.Status.StartTime.Time, now)
	}
	return formatAge(pod.CreationTimestamp.Time, now)
}
