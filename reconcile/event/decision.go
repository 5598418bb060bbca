package event

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/plan"
	"podd/runtime"
)

// A DecisionChange contains the new decision about a pod, the previous decision, and the parts of
// plan.Input from which the new decision was made.
type DecisionChange struct {
	Key types.NamespacedName
	// Pod is the desired version of the pod; nil if there is none.
	Pod           *manifest.Pod
	Before, After plan.Decision
	Observed      []runtime.Incarnation
	// Terminations is plan.History.Terminations: the terminations that had begun before the new
	// decision, by container ID.
	Terminations map[string]plan.Termination
	// Eviction is plan.Input.Eviction.
	Eviction *plan.Eviction
	// Blocker is plan.Input.Objects.Blocker: the missing object that the desired version waits for.
	refs.Blocker
	At time.Time
}

// ForDecision returns the events for the differences between d.Before and d.After.
func ForDecision(d DecisionChange) []Event {
	if d.Pod == nil {
		return append(d.killingEvents(), d.overdueEvents()...)
	}
	var events []Event
	s := NewSubject(d.Pod, d.At)
	if d.After.Rule == plan.RuleSandboxLost && d.Before.Rule != plan.RuleSandboxLost {
		events = append(events, s.NewNormalEvent("SandboxChanged", "", "Pod sandbox changed, it will be killed and re-created."))
	}
	// If the cluster already has a terminal status of the pod, there is no event, because the event
	// was recorded when the pod finished.
	if end := d.After.Finished; end != nil && end.Reason != "" && end.Reason != plan.ReasonTerminated && !d.Pod.HasFinishedAtSource() {
		events = append(events, d.failedEvent(s, end))
	}
	return slices.Concat(events, d.waitEvents(s), d.backOffEvents(s), d.killingEvents(), d.overdueEvents())
}

// overdueEvents returns the event for a pod that the node stops and that still runs long after its grace
// period.
func (d DecisionChange) overdueEvents() []Event {
	uid := d.After.OverdueUID
	if uid == "" || uid == d.Before.OverdueUID || d.Before.Rule == "" { // the first decision of this podd; an earlier podd may have recorded the event
		return nil
	}
	return []Event{Subject{d.Key, uid, d.Pod, d.At}.NewWarningEvent("ExceededGracePeriod", "", "Container runtime did not kill the pod within specified grace period.")}
}

// failedEvent returns the event for a pod that has failed for a reason other than the exit of a
// container. end is the end of the pod.
func (d DecisionChange) failedEvent(s Subject, end *plan.PodEnd) Event {
	if end.Reason == plan.ReasonDeadlineExceeded {
		return s.NewNormalEvent(end.Reason, "", end.Message)
	}
	if end.Reason == plan.ReasonEvicted && d.Eviction.AppliesTo(d.Pod) {
		return ForEviction(s, d.Eviction)
	}
	return s.NewWarningEvent(end.Reason, "", strings.TrimPrefix(end.Message, plan.RejectedPrefix))
}

// ForEviction returns the event for the eviction of a pod.
func ForEviction(s Subject, e *plan.Eviction) Event {
	evicted := s.NewWarningEvent(plan.ReasonEvicted, "", e.Message)
	evicted.Annotations = e.EventAnnotations
	return evicted
}

// waitEvents returns the event for a new reason why the pod does not start, or why an edit of the
// pod is not applied. It returns no event for failed operations on volumes, images and sandboxes,
// because ForOutcome returns the events for these failures.
func (d DecisionChange) waitEvents(s Subject) []Event {
	decision := &d.After
	if !decision.NeedsUser || decision.Why == "" || decision.Why == d.Before.Why {
		return nil
	}
	switch {
	case decision.IsEditWaiting():
		return []Event{s.NewWarningEvent("FailedSync", "", decision.Why)}
	case d.MissingMessage != "" && strings.HasPrefix(decision.Why, d.MissingMessage):
		return []Event{d.missingEvent(s)}
	case decision.Phase != plan.PhaseWait || decision.Reason == "":
		return nil
	case decision.Reason == "NetworkNotReady":
		return []Event{s.NewWarningEvent("NetworkNotReady", "", "network is not ready: "+decision.Why)}
	case decision.Reason == "NameInUse":
		return []Event{s.NewWarningEvent("FailedSync", "", decision.Why)}
	}
	return []Event{s.NewWarningEvent(decision.Reason, "", decision.Why)} // rejected by admission
}

// missingEvent returns the event for a missing object. The reason and the message depend on the
// consequence of the missing object: it prevents the setup of a volume, the creation of the
// sandbox, or the start of a container whose environment refers to it.
func (d DecisionChange) missingEvent(s Subject) Event {
	switch {
	case d.Volume != "":
		return s.NewVolumeFailedEvent("MountVolume.SetUp", d.Volume, d.After.Why)
	case d.Reason == "":
		return s.NewWarningEvent("FailedCreatePodSandBox", "", "Failed to create pod sandbox: "+d.After.Why)
	}
	return s.NewWarningEvent("Failed", "", "Error: "+d.After.Why)
}

// backOffEvents returns an event for each container that waits for the end of a new back-off. A
// back-off is new if its end differs from the end in d.Before. A different end means that the
// container has crashed again.
func (d DecisionChange) backOffEvents(s Subject) []Event {
	var events []Event
	for _, step := range d.After.Steps {
		if step.Crashes == 0 || slices.ContainsFunc(d.Before.Steps, func(b plan.Step) bool {
			return b.Container == step.Container && b.Crashes > 0 && b.Until.Equal(step.Until)
		}) {
			continue
		}
		events = append(events, s.NewWarningEvent("BackOff", step.Container, fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)",
			step.Container, s.Key.Name, s.Key.Namespace, s.UID)))
	}
	return events
}

// killingEvents returns an event for each running container that this decision begins
// to stop.
func (d DecisionChange) killingEvents() []Event {
	if d.After.Stopping == nil && d.After.Finished == nil && len(d.After.Terminations) == 0 {
		return nil // fast path: most decisions stop no container
	}
	var events []Event
	for i := range d.Observed {
		inc := &d.Observed[i]
		isPodStopping := d.After.Stopping != nil && d.After.Stopping.SandboxID == inc.ID && inc.ID != "" ||
			d.After.Finished != nil && plan.IsCreatedFrom(inc, d.Pod)
		for j := range inc.Containers {
			c := &inc.Containers[j]
			_, wasStopping := d.Terminations[c.ID]
			isOnlyContainer := !d.After.Terminations[c.ID].Since.IsZero()
			if c.State != runtime.Running || !isOnlyContainer && (!isPodStopping || wasStopping) {
				continue
			}
			e := Subject{d.Key, inc.UID, d.Pod, d.At}.NewNormalEvent("Killing", c.Name, d.killingMessage(c, isOnlyContainer))
			kind, _ := c.Kind() // the kind is from the annotation, because the manifest may no longer exist
			e.FieldPath = fieldPath(c.Name, plan.Kind(kind))
			events = append(events, e)
		}
	}
	return events
}

// killingMessage returns the message of the event for the stop of c. If isOnlyContainer is true,
// only c is stopped. Otherwise its whole pod is stopped.
func (d DecisionChange) killingMessage(c *runtime.Container, isOnlyContainer bool) string {
	i := slices.IndexFunc(d.After.Steps, func(s plan.Step) bool { return isOnlyContainer && s.Container == c.Name })
	if i < 0 {
		return "Stopping container " + c.Name
	}
	switch step := d.After.Steps[i]; {
	case step.Probe == plan.StartupProbe, step.Probe == plan.LivenessProbe:
		return fmt.Sprintf("Container %s failed %s probe%s", c.Name, step.Probe, d.restartSuffix(c))
	case step.Reason == "PostStartHookError":
		return "FailedPostStartHook"
	}
	return "Stopping container " + c.Name
}

// restartSuffix returns the last part of the message for a failed probe of c. This part states
// whether c is restarted. It depends only on the restart policy, because the exit code is not known
// yet.
func (d DecisionChange) restartSuffix(c *runtime.Container) string {
	if d.Pod == nil {
		return ", will be restarted"
	}
	policy, spec := d.Pod.Object.Spec.RestartPolicy, &d.Pod.Object.Spec
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if list[i].Name == c.Name {
				policy = manifest.EffectiveRestartPolicy(spec, &list[i])
			}
		}
	}
	if policy == v1.RestartPolicyNever {
		return ""
	}
	return ", will be restarted"
}
