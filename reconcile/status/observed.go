package status

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// observed is what the runtime says of this version of the pod, sorted.
type observed struct {
	f *Facts
	// sandbox is the newest; nil when there is none.
	sandbox *runtime.Incarnation
	// records of each container name, the newest first.
	records map[string][]runtime.Container
	// initialized says that a regular container was made in the newest sandbox.
	initialized bool
	// ended is the phase that the pod ran to its end with; "" before.
	ended v1.PodPhase
}

func observe(f *Facts) *observed {
	o := &observed{f: f, records: map[string][]runtime.Container{}}
	mine := slices.DeleteFunc(slices.Clone(f.Observed), func(i runtime.Incarnation) bool { return !isMine(f, &i) })
	slices.SortStableFunc(mine, func(a, b runtime.Incarnation) int { return cmp.Compare(b.Attempt, a.Attempt) })
	for i := range mine {
		if mine[i].ID != "" && o.sandbox == nil {
			o.sandbox = &mine[i]
		}
		for _, c := range mine[i].Containers {
			if c.CutShort() && c.Annotations[runtime.AnnotationEphemeral] == "" {
				continue // it is started again and says nothing of the pod
			}
			o.records[c.Name] = append(o.records[c.Name], c)
		}
	}
	for _, list := range o.records {
		slices.SortStableFunc(list, newestFirst)
	}
	o.initialized = o.regularMade()
	if sticks(f.Previous) && !o.regularRuns() {
		o.ended = f.Previous.Phase
	}
	return o
}

// isMine: ours, of this UID, and of this version where the sandbox tells.
func isMine(f *Facts, i *runtime.Incarnation) bool {
	if i.Foreign || i.UID != f.Pod.UID {
		return false
	}
	hash, told := i.Annotations[runtime.AnnotationHash]
	return !told || hash == f.Pod.Hash
}

// newestFirst goes by attempts, which count up through all sandboxes of a pod;
// clocks may jump.
func newestFirst(a, b runtime.Container) int {
	return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt))
}

func (o *observed) regularMade() bool {
	if o.sandbox == nil {
		return false
	}
	for i := range o.f.Pod.Spec.Spec.Containers {
		name := o.f.Pod.Spec.Spec.Containers[i].Name
		for j := range o.sandbox.Containers {
			if o.sandbox.Containers[j].Name == name {
				return true
			}
		}
	}
	return false
}

// regularRuns: after its end, the pod was started again on purpose.
func (o *observed) regularRuns() bool {
	for i := range o.f.Pod.Spec.Spec.Containers {
		r := o.records[o.f.Pod.Spec.Spec.Containers[i].Name]
		if len(r) > 0 && r[0].State == runtime.Running {
			return true
		}
	}
	return false
}

// sticks says that a pod ran to its end, which it does once. A failure with a
// reason of the pod's own does not stick: a rejected pod is tried again.
func sticks(previous *v1.PodStatus) bool {
	if previous == nil {
		return false
	}
	return previous.Phase == v1.PodSucceeded ||
		previous.Phase == v1.PodFailed && previous.Reason == ""
}

// over says that no container is started any more.
func (o *observed) over() bool {
	return o.ended != "" || o.f.Terminating || o.f.Finished != "" || o.f.Failed != nil
}

// rejected says that the pod failed before anything of it ran. Its containers
// then have no status: as waiting ones they would hide the pod's reason.
func (o *observed) rejected() bool {
	if o.f.Failed == nil || len(o.records) > 0 {
		return false
	}
	for _, c := range o.f.Containers {
		if c.LastExit != nil {
			return false
		}
	}
	return !ran(previousInit(o.f.Previous)) && !ran(previousRegular(o.f.Previous))
}

func ran(list []v1.ContainerStatus) bool {
	return slices.ContainsFunc(list, func(c v1.ContainerStatus) bool {
		return c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
	})
}
