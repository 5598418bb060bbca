package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/server/events"
)

// happenings is a log in which a pod crashes, and tries to write to the terminal.
func happenings() *events.Log {
	l := events.New(events.Options{Node: "n1", First: 41})
	web := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	shop := types.NamespacedName{Namespace: "shop", Name: "web-n1"}
	l.Add(events.Note{Type: v1.EventTypeNormal, Reason: "Starting", Message: "Starting kubelet.", Time: ago(time.Hour)})
	for i := range 3 {
		l.Add(events.Note{Type: v1.EventTypeNormal, Reason: "Started", Message: "Started container app", Pod: web, UID: "u", Field: "spec.containers{app}", Time: ago(time.Minute - time.Duration(i)*10*time.Second)})
	}
	l.Add(events.Note{Type: v1.EventTypeWarning, Reason: "Unhealthy", Message: "Liveness probe failed: \x1b[2Jgone\nagain", Pod: shop, UID: "v", Field: "spec.containers{app}", Time: ago(5 * time.Second)})
	return l
}

func listEvents(t *testing.T, c *EventsCmd, colour bool) (out, talk string) {
	t.Helper()
	var b, e bytes.Buffer
	table := eventTable{EventsCmd: c, now: func() time.Time { return at }, colour: colour}
	all, revision := happenings().Events(0)
	list := &v1.EventList{}
	list.APIVersion, list.ResourceVersion = "v1", fmt.Sprint(revision)
	for _, one := range all {
		list.Items = append(list.Items, *one)
	}
	if err := table.print(list, Streams{Out: &b, Err: &e}); err != nil {
		t.Fatal(err)
	}
	return b.String(), e.String()
}

var everywhere = Scope{AllNamespaces: true}

func TestEventsGoldens(t *testing.T) {
	for name, c := range map[string]struct {
		cmd    EventsCmd
		colour bool
	}{
		"events":           {cmd: EventsCmd{Scope: everywhere}},
		"events_default":   {},
		"events_wide":      {cmd: EventsCmd{Output: "wide", Scope: everywhere}},
		"events_coloured":  {colour: true, cmd: EventsCmd{Scope: everywhere}},
		"events_name":      {cmd: EventsCmd{Output: "name", Scope: everywhere}},
		"events_yaml":      {cmd: EventsCmd{Output: "yaml", Pod: "shop/web"}},
		"events_namespace": {cmd: EventsCmd{Scope: Scope{Namespace: "default"}}},
		"events_pod":       {cmd: EventsCmd{Pod: "web-n1", Scope: Scope{Namespace: "shop"}}},
		"events_types":     {cmd: EventsCmd{Types: []string{"warning"}, Scope: everywhere}},
		"events_none":      {cmd: EventsCmd{Pod: "absent"}},
		"events_nowhere":   {cmd: EventsCmd{Scope: Scope{Namespace: "nowhere"}}},
	} {
		out, talk := listEvents(t, &c.cmd, c.colour)
		golden(t, name, out+"-- stderr --\n"+talk)
	}
}

// TestEventsJSON: what programs read is a List of Events, however few there are.
func TestEventsJSON(t *testing.T) {
	for pod, want := range map[string]int{"": 3, "absent": 0} {
		out, _ := listEvents(t, &EventsCmd{Output: "json", Pod: pod, Scope: Scope{AllNamespaces: pod == ""}}, false)
		var list struct {
			Kind  string     `json:"kind"`
			Items []v1.Event `json:"items"`
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil || list.Kind != "List" || list.Items == nil || len(list.Items) != want {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// TestEventsFollow: what happens later stands below what has happened.
func TestEventsFollow(t *testing.T) {
	all, _ := happenings().Events(0)
	for _, format := range []string{"", "json"} {
		table := eventTable{EventsCmd: &EventsCmd{Watch: true, Output: format, Scope: Scope{Namespace: "default"}}, now: func() time.Time { return at }}
		var b bytes.Buffer
		for _, e := range all {
			if err := table.follow(e, &b); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(b.String(), "LAST SEEN"); format == "" && (n != 1 || strings.Count(b.String(), "\n") != 3) {
			t.Errorf("followed:\n%s", b.String())
		}
		if format == "json" && strings.Count(b.String(), `"kind": "Event"`) != 2 {
			t.Errorf("followed:\n%s", b.String())
		}
	}
}

// TestAdvised: what is newly advised against is told once, to whom it concerns.
func TestAdvised(t *testing.T) {
	web := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{web: {Key: web, UID: "u", Spec: &v1.Pod{}}}}
	warn := func(pod types.NamespacedName, field string) manifest.Problem {
		return manifest.Problem{Severity: manifest.Warning, Pod: pod, Field: field, Message: "m"}
	}
	set.Problems = []manifest.Problem{warn(web, "spec.imagee")}
	now := append([]manifest.Problem{warn(web, "spec.dnsPolicy"), warn(web, "spec.dnsConfig.searches"), warn(types.NamespacedName{}, "nameservers")}, set.Problems...)
	var got []string
	for _, e := range advised(set, nil, now, at) {
		got = append(got, e.Reason+" "+e.Pod.Name)
	}
	if want := "MissingClusterDNS web-n1,DNSConfigForming web-n1,CheckLimitsForResolvConf "; strings.Join(got, ",") != want {
		t.Errorf("told %q", got)
	}
	if again := advised(set, now, now, at); len(again) > 0 {
		t.Errorf("told again: %v", again)
	}
}
