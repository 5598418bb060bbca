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

// Node is an event of the node itself.
func Node(kind, reason, message string, at time.Time) Event {
	return Event{Type: kind, Reason: reason, Message: clip(message), Time: at}
}

// NodeChanged tells whether the node became ready or unready. Nothing was known
// of one with a zero before.
func NodeChanged(name string, before *runtime.Node, now runtime.Node, at time.Time) []Event {
	if before != nil && ready(*before) == ready(now) {
		return nil
	}
	word := "NodeNotReady"
	if ready(now) {
		word = "NodeReady"
	}
	return []Event{NodeStatus(name, word, at)}
}

// NodeStatus tells of a condition that the node has now, in the word for it.
func NodeStatus(name, word string, at time.Time) Event {
	return Node(v1.EventTypeNormal, word, fmt.Sprintf("Node %s status is now: %s", name, word), at)
}

// Rebooted tells that the machine was started anew; id is that of this boot.
func Rebooted(name, id string, at time.Time) Event {
	return Node(v1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", name, id), at)
}

func ready(n runtime.Node) bool { return n.Ready && n.NetworkReady }

// Refused tells the errors in manifests that were not there before: of the pod
// concerned, else of every pod of the file that runs on in an earlier version,
// else of the node.
func Refused(before, now *manifest.Set, at time.Time) []Event {
	known := map[manifest.Problem]bool{}
	if before != nil {
		for _, p := range before.Problems {
			known[p] = true
		}
	}
	var all []Event
	for _, p := range now.Problems {
		if p.Severity != manifest.Error || known[p] {
			continue
		}
		known[p] = true
		text := p.What()
		if place := p.Place(); place != "" {
			text = place + ": " + text
		}
		for _, s := range concerned(now, p, at) {
			all = append(all, s.Warning("FailedValidation", "", text))
		}
	}
	return all
}

func concerned(set *manifest.Set, p manifest.Problem, at time.Time) []Subject {
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
