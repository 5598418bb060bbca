package main

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/server/events"
)

// newEvents begins the log of events with podd's own start.
func newEvents(node string, cgroupV2 bool) *events.Log {
	now := time.Now()
	// Later than any revision of an earlier life of podd.
	l := events.New(events.Options{Node: node, First: uint64(now.UnixMicro())})
	first := []event.Event{event.Node(v1.EventTypeNormal, "Starting", "Starting kubelet.", now)}
	if !cgroupV2 {
		first = append(first, event.Node(v1.EventTypeWarning, "CgroupV1", "cgroup v1 support is in maintenance mode, please migrate to cgroup v2", now))
	}
	l.Add(notes(first)...)
	return l
}

func notes(all []event.Event) []events.Note {
	out := make([]events.Note, 0, len(all))
	for _, e := range all {
		out = append(out, events.Note(e))
	}
	return out
}

// advised are the events of what is newly advised against, which is all of DNS.
func advised(set *manifest.Set, before, now []manifest.Problem, at time.Time) []event.Event {
	var all []event.Event
	for _, p := range now {
		if p.Severity != manifest.Warning || slices.Contains(before, p) || slices.Contains(set.Problems, p) {
			continue
		}
		pod := set.Pods[p.Pod]
		switch {
		case pod == nil:
			all = append(all, event.Node(v1.EventTypeWarning, "CheckLimitsForResolvConf", p.String(), at))
		case p.Field == "spec.dnsPolicy":
			all = append(all, event.On(pod, at).Warning("MissingClusterDNS", "", p.What()))
		default:
			all = append(all, event.On(pod, at).Warning("DNSConfigForming", "", p.What()))
		}
	}
	return all
}

// tellEnforced tells whether pods together are held to what the node has for them.
func (d *podd) tellEnforced(err error) {
	e := event.Node(v1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods", time.Now())
	if err != nil {
		e.Type, e.Reason, e.Message = v1.EventTypeWarning, "FailedNodeAllocatableEnforcement", "Failed to update Node Allocatable limits: "+err.Error()
	}
	d.events.Add(events.Note(e))
}

// writeEvents appends them to a file, where one is configured, until ctx is done.
func (d *podd) writeEvents(ctx context.Context) error {
	if d.cfg.EventLog == "" {
		return nil
	}
	f := &events.File{Path: d.cfg.EventLog, Log: d.log}
	return f.Run(ctx, d.events)
}
