package status

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/order"
	"podd/runtime"
)

// observedPod contains the runtime's records of this version of the pod.
type observedPod struct {
	f *Facts
	// sandbox is the newest sandbox; nil if there is none.
	sandbox *runtime.Incarnation
	// readySandboxes is the number of ready sandboxes.
	readySandboxes int
	// containers contains the records by container name, the newest record first.
	containers map[string][]runtime.Container
	// initialized reports whether the newest sandbox has a regular container.
	initialized bool
	// endPhase is the phase with which the pod finished; "" if the pod has not finished.
	endPhase v1.PodPhase
}

// observe returns the records of f that belong to f.Pod.
func observe(f *Facts) *observedPod {
	o := &observedPod{f: f, containers: map[string][]runtime.Container{}}
	incarnations := slices.DeleteFunc(slices.Clone(f.Observed), func(i runtime.Incarnation) bool { return !isOwnIncarnation(f, &i) })
	order.Stable(incarnations, func(a, b runtime.Incarnation) int { return cmp.Compare(b.Attempt, a.Attempt) })
	for i := range incarnations {
		if incarnations[i].ID != "" && o.sandbox == nil {
			o.sandbox = &incarnations[i]
		}
		if incarnations[i].Ready {
			o.readySandboxes++
		}
		for _, c := range incarnations[i].Containers {
			if c.WasStartInterrupted() && c.Annotations[runtime.AnnotationEphemeralContainer] == "" {
				continue // skip the container, because its start was interrupted and is repeated
			}
			o.containers[c.Name] = append(o.containers[c.Name], c)
		}
	}
	for _, records := range o.containers {
		order.Stable(records, newestFirst)
	}
	o.initialized = o.hasRegular()
	if isFinal(f.Previous) && !o.isRegularRunning() {
		o.endPhase = f.Previous.Phase
	}
	return o
}

// isOwnIncarnation reports whether i is a sandbox of this podd with the UID of f.Pod, and with its
// hash if the sandbox has one.
func isOwnIncarnation(f *Facts, i *runtime.Incarnation) bool {
	if i.Foreign || i.UID != f.Pod.UID {
		return false
	}
	hash, ok := i.Annotations[runtime.AnnotationPodHash]
	return !ok || hash == f.Pod.Hash
}

// newestFirst compares records by attempt, which increases over all sandboxes of a pod,
// and then by creation time. The time alone is not reliable because clocks may jump.
func newestFirst(a, b runtime.Container) int {
	return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt))
}

func (o *observedPod) hasRegular() bool {
	if o.sandbox == nil {
		return false
	}
	for i := range o.f.Pod.Object.Spec.Containers {
		name := o.f.Pod.Object.Spec.Containers[i].Name
		for j := range o.sandbox.Containers {
			if o.sandbox.Containers[j].Name == name {
				return true
			}
		}
	}
	return false
}

// isRegularRunning reports whether a regular container runs. If the pod had already finished, the
// container runs because a user requested its restart.
func (o *observedPod) isRegularRunning() bool {
	for i := range o.f.Pod.Object.Spec.Containers {
		r := o.containers[o.f.Pod.Object.Spec.Containers[i].Name]
		if len(r) > 0 && r[0].State == runtime.Running {
			return true
		}
	}
	return false
}

// isFinal reports whether previousStatus has a phase that the pod cannot leave. A failure for a
// reason of the whole pod is not final, because podd retries a rejected pod.
func isFinal(previousStatus *v1.PodStatus) bool {
	if previousStatus == nil {
		return false
	}
	return previousStatus.Phase == v1.PodSucceeded ||
		previousStatus.Phase == v1.PodFailed && previousStatus.Reason == ""
}

// restartsNothing reports whether podd no longer starts any container of the pod.
func (o *observedPod) restartsNothing() bool {
	return o.endPhase != "" || o.f.Terminating || o.f.FinalPhase != "" || o.f.FailureReason != nil
}

// isRejected reports whether the pod failed before any of its containers ran. Its
// containers then have no status, because waiting containers would hide the reason of
// the pod.
func (o *observedPod) isRejected() bool {
	if o.f.FailureReason == nil || len(o.containers) > 0 {
		return false
	}
	for _, c := range o.f.Containers {
		if c.LastExit != nil {
			return false
		}
	}
	return !anyRan(previousInitStatuses(o.f.Previous)) && !anyRan(previousRegularStatuses(o.f.Previous))
}

func anyRan(list []v1.ContainerStatus) bool {
	return slices.ContainsFunc(list, func(c v1.ContainerStatus) bool {
		return c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
	})
}
