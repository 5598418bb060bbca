package event

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
	"podd/runtime"
)

// NewNodeEvent returns an event of the node. kind is v1.EventTypeNormal or v1.EventTypeWarning.
func NewNodeEvent(kind, reason, message string, at time.Time) Event {
	return Event{Type: kind, Reason: reason, Message: truncate(message), Time: at}
}

// ForNodeChange returns an event if the node became ready or not ready. If previous is nil, the
// node was not observed earlier, and ForNodeChange returns an event for the present state.
func ForNodeChange(name string, previous *runtime.Node, current runtime.Node, at time.Time) []Event {
	if previous != nil && isReady(*previous) == isReady(current) {
		return nil
	}
	reason := "NodeNotReady"
	if isReady(current) {
		reason = "NodeReady"
	}
	return []Event{ForNodeCondition(name, reason, at)}
}

// ForNodeCondition returns the event for a changed condition of the node. reason names the
// new state, such as "NodeHasDiskPressure".
func ForNodeCondition(name, reason string, at time.Time) Event {
	return NewNodeEvent(v1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", name, reason), at)
}

// ForEvictionThreshold returns the event for the beginning of an attempt to reclaim a resource because
// an eviction threshold is met.
func ForEvictionThreshold(resource v1.ResourceName, at time.Time) Event {
	return NewNodeEvent(v1.EventTypeWarning, "EvictionThresholdMet", fmt.Sprintf("Attempting to reclaim %s", resource), at)
}

// ForReboot returns the event for a reboot of the node. id is the ID of the new boot.
func ForReboot(name, id string, at time.Time) Event {
	return NewNodeEvent(v1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", name, id), at)
}

// ForSwappedVolumes returns the event for a node with swap whose kernel cannot exclude the files of a
// tmpfs from swap.
func ForSwappedVolumes(at time.Time) Event {
	return NewNodeEvent(v1.EventTypeWarning, "PossibleMemoryBackedVolumesOnDisk",
		"The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.", at)
}

func isReady(n runtime.Node) bool { return n.Ready && n.NetworkReady }

// ForProblems returns an event for each error in the current set that is not in the previous set.
// previous may be nil. Each event is about the pod that the error names. If the error names no pod,
// there is one event for every pod of the file, because these pods keep running in an earlier
// version. If the file has no pods, the event is about the node.
func ForProblems(previous, current *manifest.Set, at time.Time) []Event {
	isRecorded := map[manifest.Problem]bool{}
	if previous != nil {
		for _, p := range previous.Problems {
			isRecorded[p] = true
		}
	}
	var events []Event
	for _, p := range current.Problems {
		if p.Severity != manifest.Error || isRecorded[p] {
			continue
		}
		isRecorded[p] = true
		text := p.Text()
		if place := p.Location(); place != "" {
			text = place + ": " + text
		}
		for _, s := range problemSubjects(current, p, at) {
			events = append(events, s.NewWarningEvent("FailedValidation", "", text))
		}
	}
	return events
}

// problemSubjects returns the subjects of the events for problem p, sorted by name; see ForProblems.
func problemSubjects(set *manifest.Set, p manifest.Problem, at time.Time) []Subject {
	if p.Pod != (types.NamespacedName{}) {
		s := Subject{Key: p.Pod, At: at}
		if pod := set.Pods[p.Pod]; pod != nil {
			s = NewSubject(pod, at)
		}
		return []Subject{s}
	}
	var subjects []Subject
	for _, pod := range set.Pods {
		if p.Path != "" && pod.Origin.Path == p.Path {
			subjects = append(subjects, NewSubject(pod, at))
		}
	}
	order.Slice(subjects, func(a, b Subject) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	if len(subjects) == 0 {
		subjects = []Subject{{At: at}}
	}
	return subjects
}
