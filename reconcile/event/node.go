package event

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// Node returns an event of the node. kind is v1.EventTypeNormal or v1.EventTypeWarning.
func Node(kind, reason, message string, at time.Time) Event {
	return Event{Type: kind, Reason: reason, Message: truncate(message), Time: at}
}

// NodeChanged returns an event if the node became ready or not ready. If before is nil,
// the node was not observed yet and its present state is an event.
func NodeChanged(name string, before *runtime.Node, now runtime.Node, at time.Time) []Event {
	if before != nil && ready(*before) == ready(now) {
		return nil
	}
	reason := "NodeNotReady"
	if ready(now) {
		reason = "NodeReady"
	}
	return []Event{NodeStatus(name, reason, at)}
}

// NodeStatus returns the event for a changed condition of the node. reason names the
// new state, such as "NodeHasDiskPressure".
func NodeStatus(name, reason string, at time.Time) Event {
	return Node(v1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", name, reason), at)
}

// Rebooted returns the event for a reboot of the node. id is the ID of the new boot.
func Rebooted(name, id string, at time.Time) Event {
	return Node(v1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", name, id), at)
}

func ready(n runtime.Node) bool { return n.Ready && n.NetworkReady }

// Refused returns events for the errors in now that are not in before; before may be
// nil. The events are about the pod that the error names, else about every pod of the
// file, which keeps running in an earlier version, else about the node.
func Refused(before, now *manifest.Set, at time.Time) []Event {
	recorded := map[manifest.Problem]bool{}
	if before != nil {
		for _, p := range before.Problems {
			recorded[p] = true
		}
	}
	var all []Event
	for _, p := range now.Problems {
		if p.Severity != manifest.Error || recorded[p] {
			continue
		}
		recorded[p] = true
		text := p.Text()
		if place := p.Place(); place != "" {
			text = place + ": " + text
		}
		for _, s := range subjects(now, p, at) {
			all = append(all, s.Warning("FailedValidation", "", text))
		}
	}
	return all
}

// subjects returns the subjects of the events for p, sorted by name: see Refused.
func subjects(set *manifest.Set, p manifest.Problem, at time.Time) []Subject {
	if p.Pod != (types.NamespacedName{}) {
		s := Subject{Key: p.Pod, At: at}
		if pod := set.Pods[p.Pod]; pod != nil {
			s = On(pod, at)
		}
		return []Subject{s}
	}
	var all []Subject
	for _, pod := range set.Pods {
		if p.Path != "" && pod.Origin.Path == p.Path {
			all = append(all, On(pod, at))
		}
	}
	slices.SortFunc(all, func(a, b Subject) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	if len(all) == 0 {
		all = []Subject{{At: at}}
	}
	return all
}
