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
func (s *State) PodWithStatus(d plan.Decision) (*State, *v1.Pod) {
	t := s.begin(s.PlanInput.Now)
	var pod *v1.Pod
	if t.PlanInput.Desired == nil {
		pod = t.terminatingPod()
	} else {
		pod = t.podWithStatus(d)
	}
	return t.State, pod
}

// podWithStatus returns the version in force with its status.
func (t *transition) podWithStatus(d plan.Decision) *v1.Pod {
	if t.PlanInput.Desired.HasFinishedAtSource() && len(t.PlanInput.Observed) == 0 {
		t.publishedPod, t.publishedVersion = t.PlanInput.Desired.Object, t.PlanInput.Desired
		return t.publishedPod
	}
	if !t.HasObserved && t.PlanInput.Desired.Traits.HasStateAtSource && t.PlanInput.Desired.Object.Status.Phase != "" {
		// The runtime was not observed yet, so the status at the source is the newest.
		t.publishedPod, t.publishedVersion = t.PlanInput.Desired.Object, t.PlanInput.Desired
		return t.publishedPod
	}
	st := status.Compute(t.statusFacts(d))
	if t.publishedPod != nil && t.publishedVersion == t.PlanInput.Desired && equality.Semantic.DeepEqual(t.publishedPod.Status, st) {
		return t.publishedPod
	}
	p := *t.PlanInput.Desired.Object
	p.Status = st
	t.publishedPod, t.publishedVersion = &p, t.PlanInput.Desired
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
		now := metav1.NewTime(t.PlanInput.Now)
		p.DeletionTimestamp = &now
	}
	if s := t.PlanInput.History.Stopping; s != nil {
		seconds := int64(s.Grace / time.Second)
		p.DeletionGracePeriodSeconds = &seconds
	}
	if !t.HasObserved { // the status is not computed, because the states of the containers are not known yet
		t.publishedPod = &p
		return t.publishedPod
	}
	facts := status.Facts{
		Pod: t.publishedVersion, Observed: t.PlanInput.Observed, StartTime: t.StartTime,
		HostIPs: t.hostIPs(), RuntimeName: t.Order.RuntimeName, TerminationMessages: t.PlanInput.History.TerminationMessages, Previous: &t.publishedPod.Status,
		SupportsRecursiveReadOnly: t.supportsRecursiveReadOnly(t.publishedVersion),
		Now:                       t.PlanInput.Now, Terminating: true, Containers: map[string]status.ContainerFacts{},
	}
	if e := t.TerminatingEviction(); e != nil {
		facts.FinalPhase, facts.FailureReason = v1.PodFailed, &status.Reason{Reason: plan.ReasonEvicted, Message: e.Message}
		facts.IsPressureEviction = e.Shortage != (plan.Shortage{})
	}
	t.addProbeFacts(&facts)
	t.addHookFacts(&facts)
	p.Status = status.Compute(facts)
	t.publishedPod = &p
	return t.publishedPod
}

// TerminatingEviction returns the eviction of a pod that is not desired any more and was evicted while it
// was being stopped; nil if there is none.
func (s *State) TerminatingEviction() *plan.Eviction {
	d, p := s.PlanInput.Deletion, s.publishedVersion
	if s.PlanInput.Desired != nil || d == nil || p == nil || p.UID != d.UID {
		return nil
	}
	return d.Eviction
}

// applyTerminating replaces the last version by t.Order.TerminatingPod, because podd may have had
// no manifest of the pod before.
func (t *transition) applyTerminating() {
	version := t.Order.TerminatingPod
	if version == nil || version == t.publishedVersion || t.publishedPod != nil && !EqualVersion(version, t.publishedVersion) {
		return
	}
	p := *version.Object
	if t.publishedPod != nil {
		p.Status = t.publishedPod.Status
	}
	t.publishedPod, t.publishedVersion = &p, version
}

// hostIPs returns the addresses of the node. It returns nil until the router has sent an Order that
// contains them.
func (t *transition) hostIPs() []string {
	if t.Order.RenderNode == nil {
		return nil
	}
	return t.Order.RenderNode.HostIPs
}

// supportsRecursiveReadOnly reports whether the pod's runtime handler supports recursive read-only
// mounts.
func (t *transition) supportsRecursiveReadOnly(p *manifest.Pod) bool {
	return t.Order.RenderNode != nil && t.Order.RenderNode.Handler(p).RecursiveReadOnlyMounts
}

// statusFacts returns the facts from which status.Compute computes the status of the version in
// force.
func (t *transition) statusFacts(d plan.Decision) status.Facts {
	f := status.Facts{
		Pod: t.PlanInput.Desired, Observed: t.PlanInput.Observed,
		Containers:          map[string]status.ContainerFacts{},
		StartTime:           t.StartTime,
		HostIPs:             t.hostIPs(),
		IsUndecided:         t.PlanInput.History.Finished == nil,
		TerminationMessages: t.PlanInput.History.TerminationMessages,
		RuntimeName:         t.Order.RuntimeName,
		Now:                 t.PlanInput.Now,

		SupportsRecursiveReadOnly: t.supportsRecursiveReadOnly(t.PlanInput.Desired),
	}
	if t.publishedPod != nil && t.publishedVersion != nil && EqualVersion(t.publishedVersion, t.PlanInput.Desired) {
		f.Previous = &t.publishedPod.Status
	} else if t.PlanInput.Desired.Traits.HasStateAtSource && t.PlanInput.Desired.Object.Status.Phase != "" {
		f.Previous = &t.PlanInput.Desired.Object.Status // the status at the source, which an earlier podd reported
	}
	if d.Phase == plan.PhaseWait {
		f.Waiting = status.Reason{Reason: d.Reason, Message: d.Why}
	}
	if fin := t.PlanInput.History.Finished; fin != nil {
		f.FinalPhase = v1.PodSucceeded
		if fin.Failed {
			f.FinalPhase = v1.PodFailed
		}
		if fin.Reason != "" {
			f.FailureReason = &status.Reason{Reason: fin.Reason, Message: fin.Message}
			f.IsPressureEviction = fin.Shortage != (plan.Shortage{})
		}
	}
	restartedContainers := plan.ContainersRestartedWithAll(&t.PlanInput)
	f.IsRestartingAll = d.Rule == plan.RuleRestartAllContainers
	for _, s := range d.Steps {
		f.Containers[s.Container] = status.ContainerFacts{Waiting: status.Reason{Reason: s.Reason, Message: s.Why}}
	}
	for name, h := range t.PlanInput.History.Containers {
		c := f.Containers[name]
		c.Restarts, c.RestartsWithAll = int32(h.Restarts), restartedContainers[name]
		if h.LastExit != nil {
			c.LastExit = newTerminatedState(h.LastExit)
			c.Restarts = int32(h.LastExit.Attempt - h.LastExit.Skipped)
		}
		f.Containers[name] = c
	}
	t.addProbeFacts(&f)
	t.addHookFacts(&f)
	f.Allocated, f.Actual, f.Resize = plan.WithAllocatedSizes(&t.PlanInput), plan.WithActualSizes(&t.PlanInput), t.resizeStatus()
	f.UnhealthyDevices = t.Order.UnhealthyDevices
	f.AllocatedResources, f.Resources = plan.PodResources(&t.PlanInput)
	return f
}

// newTerminatedState returns the container status of an exit.
func newTerminatedState(e *plan.Exit) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: e.Code, Reason: e.Reason, Message: status.JoinMessages(e.Message, e.TerminationMessage), ContainerID: e.ID,
		StartedAt: metav1.NewTime(e.StartedAt), FinishedAt: metav1.NewTime(e.FinishedAt),
	}
}

// resizeStatus returns the progress of resizing the pod.
func (t *transition) resizeStatus() status.Resize {
	var r status.Resize
	if t.PlanInput.Successor != nil || !plan.IsResizePending(&t.PlanInput) {
		return r
	}
	if v := t.PlanInput.Verdict; v.Answer != plan.Admit {
		if r.PendingReason = (status.Reason{Reason: v1.PodReasonDeferred, Message: v.Message}); v.NeverFits {
			r.PendingReason.Reason = v1.PodReasonInfeasible // the node is too small
		}
		return r
	}
	r.InProgress, r.FailureMessage = true, t.PlanInput.History.ResizePodFailure.Message
	for _, name := range slices.Sorted(maps.Keys(t.PlanInput.History.Containers)) {
		r.FailureMessage = cmp.Or(r.FailureMessage, t.PlanInput.History.Containers[name].ResizeFailure.Message)
	}
	return r
}

// addProbeFacts adds the results of probes to the facts of the running containers.
func (t *transition) addProbeFacts(f *status.Facts) {
	for i := range t.PlanInput.Observed {
		if !plan.IsCreatedFrom(&t.PlanInput.Observed[i], f.Pod) {
			continue
		}
		for _, c := range t.PlanInput.Observed[i].Containers {
			probes, ok := t.PlanInput.History.ProbeStates[c.ID]
			if !ok || c.State != runtime.Running {
				continue
			}
			facts := f.Containers[c.Name]
			facts.Started, facts.Ready = probePassed(probes.Startup), probePassed(probes.Readiness)
			f.Containers[c.Name] = facts
		}
	}
}

// probePassed returns a pointer to true if the probe has passed. Otherwise it returns nil, and
// status.Compute uses the default, which depends on whether the container has this probe.
func probePassed(s plan.ProbeState) *bool {
	if s.Health != plan.ProbePassed {
		return nil
	}
	hasPassed := true
	return &hasPassed
}

// addHookFacts sets IsStarting for the running containers with an unfinished postStart hook. As in
// a kubelet, the state of such a container is waiting.
func (t *transition) addHookFacts(f *status.Facts) {
	if f.FailureReason != nil || f.FinalPhase != "" {
		return // do not set IsStarting, because the status of a failed or finished pod must show running containers as running
	}
	for i := range t.PlanInput.Observed {
		if !plan.IsCreatedFrom(&t.PlanInput.Observed[i], f.Pod) {
			continue
		}
		for j := range t.PlanInput.Observed[i].Containers {
			c := &t.PlanInput.Observed[i].Containers[j]
			spec, _, _ := plan.FindContainer(f.Pod.Object, c.Name)
			if spec == nil || !t.PlanInput.History.Containers[c.Name].PostStart.IsPending(spec, c, t.PlanInput.Now) {
				continue
			}
			facts := f.Containers[c.Name]
			facts.IsStarting = true
			f.Containers[c.Name] = facts
		}
	}
}

// IsOnDiskOnly reports whether no process of the pod runs and removing its data on disk failed.
func (s *State) IsOnDiskOnly() bool {
	runs := func(inc runtime.Incarnation) bool { return !inc.Foreign && plan.IsLive(&inc) }
	hasFailedRemoval := func(d plan.PodDir) bool {
		return s.PlanInput.History.CleanupFailures[plan.RemoveDir{UID: d.UID}.Subject()].Count > 0
	}
	return !slices.ContainsFunc(s.PlanInput.Observed, runs) && slices.ContainsFunc(s.PlanInput.PodDirs, hasFailedRemoval)
}
