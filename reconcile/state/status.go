package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/status"
	"podd/runtime"
)

// PodWithStatus returns the version in force with the status that follows from decision d, and the
// state that contains this pod. If the pod is not desired, PodWithStatus returns the last version.
// While the status does not change, it returns the same pointer. The pod is nil if podd never had a
// manifest of the pod.
func (s State) PodWithStatus(d plan.Decision) (State, *v1.Pod) {
	t := s.begin(s.In.Now)
	var pod *v1.Pod
	if t.In.Desired == nil {
		pod = t.terminatingPod()
	} else {
		pod = t.podWithStatus(d)
	}
	return t.State, pod
}

// podWithStatus returns the version in force with its status.
func (t *transition) podWithStatus(d plan.Decision) *v1.Pod {
	if t.In.Desired.HasFinishedAtSource() && len(t.In.Observed) == 0 {
		t.publishedPod, t.publishedFrom = t.In.Desired.Object, t.In.Desired
		return t.publishedPod
	}
	if !t.HasObserved && t.In.Desired.Traits.HasStateAtSource && t.In.Desired.Object.Status.Phase != "" {
		// The runtime was not observed yet, so the status at the source is the newest.
		t.publishedPod, t.publishedFrom = t.In.Desired.Object, t.In.Desired
		return t.publishedPod
	}
	st := status.Compute(t.statusFacts(d))
	if t.publishedPod != nil && t.publishedFrom == t.In.Desired && equality.Semantic.DeepEqual(t.publishedPod.Status, st) {
		return t.publishedPod
	}
	p := *t.In.Desired.Object
	p.Status = st
	t.publishedPod, t.publishedFrom = &p, t.In.Desired
	return t.publishedPod
}

// terminatingPod returns the last version of a pod that is not desired any more, with its status;
// nil if podd never had a manifest of the pod.
func (t *transition) terminatingPod() *v1.Pod {
	t.applyTerminating()
	if t.publishedPod == nil {
		return nil
	}
	p := *t.publishedPod
	if p.DeletionTimestamp == nil {
		now := metav1.NewTime(t.In.Now)
		p.DeletionTimestamp = &now
	}
	if s := t.In.History.Stopping; s != nil {
		seconds := int64(s.Grace / time.Second)
		p.DeletionGracePeriodSeconds = &seconds
	}
	if !t.HasObserved { // the states of the containers are not known yet
		t.publishedPod = &p
		return t.publishedPod
	}
	facts := status.Facts{
		Pod: t.publishedFrom, Observed: t.In.Observed, StartTime: t.StartTime,
		HostIPs: t.hostIPs(), RuntimeName: t.Order.RuntimeName, TerminationMessages: t.In.History.TerminationMessages, Previous: &t.publishedPod.Status,
		RecursiveReadOnly: t.supportsRecursiveReadOnly(t.publishedFrom),
		Now:               t.In.Now, Terminating: true, Containers: map[string]status.ContainerFacts{},
	}
	t.addProbeFacts(&facts)
	t.addHookFacts(&facts)
	p.Status = status.Compute(facts)
	t.publishedPod = &p
	return t.publishedPod
}

// applyTerminating replaces the last version by t.Order.Terminating, because podd may not have had
// a manifest of the pod before.
func (t *transition) applyTerminating() {
	from := t.Order.Terminating
	if from == nil || from == t.publishedFrom || t.publishedPod != nil && !EqualVersion(from, t.publishedFrom) {
		return
	}
	p := *from.Object
	if t.publishedPod != nil {
		p.Status = t.publishedPod.Status
	}
	t.publishedPod, t.publishedFrom = &p, from
}

// hostIPs returns the node's addresses; nil if there is no order with them yet.
func (t *transition) hostIPs() []string {
	if t.Order.Render == nil {
		return nil
	}
	return t.Order.Render.HostIPs
}

// supportsRecursiveReadOnly reports whether the pod's runtime handler supports recursive read-only
// mounts.
func (t *transition) supportsRecursiveReadOnly(p *manifest.Pod) bool {
	return t.Order.Render != nil && t.Order.Render.Handler(p).RecursiveReadOnlyMounts
}

// statusFacts returns the facts from which status.Compute computes the status of the version in
// force.
func (t *transition) statusFacts(d plan.Decision) status.Facts {
	f := status.Facts{
		Pod: t.In.Desired, Observed: t.In.Observed,
		Containers:          map[string]status.ContainerFacts{},
		StartTime:           t.StartTime,
		HostIPs:             t.hostIPs(),
		IsUnrecorded:        d.RecordFirst && t.In.History.Finished == nil,
		TerminationMessages: t.In.History.TerminationMessages,
		RuntimeName:         t.Order.RuntimeName,
		Now:                 t.In.Now,

		RecursiveReadOnly: t.supportsRecursiveReadOnly(t.In.Desired),
	}
	if t.publishedPod != nil && t.publishedFrom != nil && EqualVersion(t.publishedFrom, t.In.Desired) {
		f.Previous = &t.publishedPod.Status
	} else if t.In.Desired.Traits.HasStateAtSource && t.In.Desired.Object.Status.Phase != "" {
		f.Previous = &t.In.Desired.Object.Status // the status at the source, which an earlier podd reported
	}
	if d.Phase == plan.PhaseWait {
		f.Waiting = status.Reason{Reason: d.Reason, Message: d.Why}
	}
	if fin := t.In.History.Finished; fin != nil {
		f.Finished = v1.PodSucceeded
		if fin.Failed {
			f.Finished = v1.PodFailed
		}
		if fin.Reason != "" {
			f.Failed = &status.Reason{Reason: fin.Reason, Message: fin.Message}
		}
	}
	restarting := plan.RestartsWithAll(&t.In)
	f.RestartsAll = d.Rule == plan.RuleRestartAllContainers
	for _, s := range d.Steps {
		f.Containers[s.Container] = status.ContainerFacts{Waiting: status.Reason{Reason: s.Reason, Message: s.Why}}
	}
	for name, h := range t.In.History.Containers {
		c := f.Containers[name]
		c.Restarts, c.RestartsWithAll = int32(h.Restarts), restarting[name]
		if h.LastExit != nil {
			c.LastExit = terminated(h.LastExit)
			c.Restarts = int32(h.LastExit.Attempt - h.LastExit.Skipped)
		}
		f.Containers[name] = c
	}
	t.addProbeFacts(&f)
	t.addHookFacts(&f)
	f.Allocated, f.Actual, f.Resize = plan.WithAllocatedSizes(&t.In), plan.WithActualSizes(&t.In), t.resizeStatus()
	f.UnhealthyDevices = t.Order.UnhealthyDevices
	f.AllocatedResources, f.Resources = plan.PodResources(&t.In)
	return f
}

// terminated returns the container status of an exit.
func terminated(e *plan.Exit) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: e.Code, Reason: e.Reason, Message: status.JoinMessages(e.Message, e.TerminationMessage), ContainerID: e.ID,
		StartedAt: metav1.NewTime(e.StartedAt), FinishedAt: metav1.NewTime(e.FinishedAt),
	}
}

// resizeStatus returns the progress of resizing the pod.
func (t *transition) resizeStatus() status.Resize {
	var r status.Resize
	if t.In.Successor != nil || !plan.ResizePending(&t.In) {
		return r
	}
	if v := t.In.Verdict; v.Answer != plan.Admit {
		if r.Pending = (status.Reason{Reason: v1.PodReasonDeferred, Message: v.Message}); v.NeverFits {
			r.Pending.Reason = v1.PodReasonInfeasible // the node is too small
		}
		return r
	}
	r.InProgress, r.Failed = true, t.In.History.ResizePodFailure.Message
	for _, name := range slices.Sorted(maps.Keys(t.In.History.Containers)) {
		r.Failed = cmp.Or(r.Failed, t.In.History.Containers[name].ResizeFailure.Message)
	}
	return r
}

// addProbeFacts adds the results of probes to the facts of the running containers.
func (t *transition) addProbeFacts(f *status.Facts) {
	for i := range t.In.Observed {
		if !plan.IsCreatedFrom(&t.In.Observed[i], f.Pod) {
			continue
		}
		for _, c := range t.In.Observed[i].Containers {
			probed, ok := t.In.History.Probed[c.ID]
			if !ok || c.State != runtime.Running {
				continue
			}
			facts := f.Containers[c.Name]
			facts.Started, facts.Ready = probePassed(probed.Startup), probePassed(probed.Readiness)
			f.Containers[c.Name] = facts
		}
	}
}

// probePassed returns a pointer to true if the probe has passed. Otherwise it returns nil;
// status.Compute then uses the default, which depends on whether the container has this probe.
func probePassed(s plan.ProbeState) *bool {
	if s.Health != plan.Passed {
		return nil
	}
	yes := true
	return &yes
}

// addHookFacts sets Starting for the running containers with an unfinished postStart hook. As
// in a kubelet, the state of such a container is waiting.
func (t *transition) addHookFacts(f *status.Facts) {
	if f.Failed != nil || f.Finished != "" {
		return // the status must show the containers that still run as running
	}
	for i := range t.In.Observed {
		if !plan.IsCreatedFrom(&t.In.Observed[i], f.Pod) {
			continue
		}
		for j := range t.In.Observed[i].Containers {
			c := &t.In.Observed[i].Containers[j]
			spec, _, _ := plan.FindContainer(f.Pod.Object, c.Name)
			if spec == nil || !t.In.History.Containers[c.Name].PostStart.IsPending(spec, c, t.In.Now) {
				continue
			}
			facts := f.Containers[c.Name]
			facts.IsStarting = true
			f.Containers[c.Name] = facts
		}
	}
}

// IsOnDiskOnly reports whether no process of the pod runs, and removing its data on disk failed.
func (s State) IsOnDiskOnly() bool {
	runs := func(inc runtime.Incarnation) bool { return !inc.Foreign && plan.IsLive(&inc) }
	failed := func(d plan.Dir) bool {
		return s.In.History.CleanupFailures[plan.RemoveDir{UID: d.UID}.Subject()].Count > 0
	}
	return !slices.ContainsFunc(s.In.Observed, runs) && slices.ContainsFunc(s.In.Dirs, failed)
}
