package daemon

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/server/events"
)

// newEventLog returns an event log that contains the events of podd's start.
func newEventLog(node string, cgroupV2 bool) *events.Log {
	now := time.Now()
	// The first revision is the current time, because revisions must be higher than those of an
	// earlier process.
	l := events.New(events.Options{Node: node, FirstRevision: uint64(now.UnixMicro())})
	startEvents := []event.Event{event.NewNodeEvent(v1.EventTypeNormal, "Starting", "Starting kubelet.", now)}
	if !cgroupV2 {
		startEvents = append(startEvents, event.NewNodeEvent(v1.EventTypeWarning, "CgroupV1", "cgroup v1 support is in maintenance mode, please migrate to cgroup v2", now))
	}
	l.Add(eventNotes(startEvents)...)
	return l
}

// eventNotes converts events to the form in which the event log stores them.
func eventNotes(list []event.Event) []events.Occurrence {
	out := make([]events.Occurrence, 0, len(list))
	for _, e := range list {
		out = append(out, events.Occurrence(e))
	}
	return out
}

// dnsWarningEvents returns an event for each new warning about DNS. previous and current contain
// the previous and the current warnings. dnsWarningEvents omits problems of manifests.
func dnsWarningEvents(set *manifest.Set, previous, current []manifest.Problem, at time.Time) []event.Event {
	var events []event.Event
	for _, p := range current {
		if p.Severity != manifest.Warning || slices.Contains(previous, p) || slices.Contains(set.Problems, p) {
			continue
		}
		pod := set.Pods[p.Pod]
		switch {
		case pod == nil:
			events = append(events, event.NewNodeEvent(v1.EventTypeWarning, "CheckLimitsForResolvConf", p.String(), at))
		case p.FieldPath == "spec.dnsPolicy":
			events = append(events, event.NewSubject(pod, at).NewWarningEvent("MissingClusterDNS", "", p.Text()))
		default:
			events = append(events, event.NewSubject(pod, at).NewWarningEvent("DNSConfigForming", "", p.Text()))
		}
	}
	return events
}

// enforcementEvent returns the event for setting the limit of all pods together. err is the
// result.
func enforcementEvent(err error, at time.Time) event.Event {
	e := event.NewNodeEvent(v1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods", at)
	if err != nil {
		e.Type, e.Reason, e.Message = v1.EventTypeWarning, "FailedNodeAllocatableEnforcement", "Failed to update Node Allocatable limits: "+err.Error()
	}
	return e
}
