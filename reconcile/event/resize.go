package event

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/condition"
)

// A ResizeChange contains the pod as podd last published it and as podd publishes it now.
type ResizeChange struct {
	Subject
	// Before is nil if this version of the pod was not published before.
	Before, After *v1.Pod
	// IsNewSize reports whether Before and After have different desired sizes.
	IsNewSize bool
	// IsPending reports whether a running container or the pod does not have its desired size yet.
	IsPending bool
}

// ForResize returns the events for the differences between the conditions about a resize. The
// reasons of the events are the kubelet's. The messages are also the kubelet's, except for the
// cause of an error.
func ForResize(c ResizeChange) []Event {
	pendingBefore, pending := findTrueCondition(c.Before, v1.PodResizePending), findTrueCondition(c.After, v1.PodResizePending)
	inProgressBefore, inProgress := findTrueCondition(c.Before, v1.PodResizeInProgress), findTrueCondition(c.After, v1.PodResizeInProgress)
	isCompleted := inProgressBefore != nil && inProgress == nil && !c.IsPending && !manifest.IsTerminal(c.After.Status.Phase)
	var events []Event
	if pending != nil && (c.IsNewSize || pendingBefore == nil || pendingBefore.Reason != pending.Reason) {
		events = append(events, c.NewWarningEvent("Resize"+pending.Reason, "", c.message(pending.Reason, pending.Message)))
	}
	// A new size replaces a resize in progress and begins a new resize. If the new size is the
	// actual size, the new resize is completed at once.
	if inProgress != nil && inProgressBefore == nil || c.IsNewSize && (inProgress != nil || isCompleted) {
		events = append(events, c.NewNormalEvent("ResizeStarted", "", c.message("started", "")))
	}
	if inProgress != nil && inProgress.Message != "" && (c.IsNewSize || inProgressBefore == nil || inProgressBefore.Message != inProgress.Message) {
		events = append(events, c.NewWarningEvent("ResizeError", "", c.message("error", inProgress.Message)))
	}
	if isCompleted {
		events = append(events, c.NewNormalEvent("ResizeCompleted", "", c.message("completed", "")))
	}
	return events
}

// message returns the message of an event about the resize. result is the state of the resize, and
// failure is the cause of an error; it may be "".
func (c ResizeChange) message(result, failure string) string {
	return "Pod resize " + result + ": " + formatSizes(c.After, failure)
}

// findTrueCondition returns the condition of this type that is true. It returns nil if p has none, or
// if p is nil.
func findTrueCondition(p *v1.Pod, t v1.PodConditionType) *v1.PodCondition {
	if p == nil || !condition.IsTrue(p.Status.Conditions, t) {
		return nil
	}
	return condition.Find(p.Status.Conditions, t)
}

// resizeSummary is the JSON in the messages of events about a resize. Like the kubelet's, it omits the
// resources of the pod itself.
type resizeSummary struct {
	InitContainers []containerSize `json:"initContainers,omitempty"`
	Containers     []containerSize `json:"containers,omitempty"`
	Generation     int64           `json:"generation"`
	Error          string          `json:"error,omitempty"`
}

type containerSize struct {
	Name      string                  `json:"name"`
	Resources v1.ResourceRequirements `json:"resources"`
}

// formatSizes returns the desired resources of all containers of a pod as JSON. The JSON also
// contains the generation of the pod and the cause of an error, which may be "".
func formatSizes(p *v1.Pod, failure string) string {
	text, err := json.Marshal(resizeSummary{
		InitContainers: containerSizes(p.Spec.InitContainers), Containers: containerSizes(p.Spec.Containers),
		Generation: p.Generation, Error: failure,
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func containerSizes(list []v1.Container) []containerSize {
	var sizes []containerSize
	for i := range list {
		sizes = append(sizes, containerSize{list[i].Name, list[i].Resources})
	}
	return sizes
}
