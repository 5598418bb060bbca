package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
	"podd/server/events"
)

// newEventLog returns a log with events of a node and two pods. One message contains control
// characters of terminals.
func newEventLog() *events.Log {
	l := events.New(events.Options{Node: "n1", FirstRevision: 41})
	web := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	shop := types.NamespacedName{Namespace: "shop", Name: "web-n1"}
	l.Add(events.Occurrence{Type: v1.EventTypeNormal, Reason: "Starting", Message: "Starting kubelet.", Time: poddtest.BeforeAt(time.Hour)})
	for i := range 3 {
		l.Add(events.Occurrence{Type: v1.EventTypeNormal, Reason: "Started", Message: "Started container app", Pod: web, UID: "u", FieldPath: "spec.containers{app}", Time: poddtest.BeforeAt(time.Minute - time.Duration(i)*10*time.Second)})
	}
	l.Add(events.Occurrence{Type: v1.EventTypeWarning, Reason: "Unhealthy", Message: "Liveness probe failed: \x1b[2Jgone\nagain", Pod: shop, UID: "v", FieldPath: "spec.containers{app}", Time: poddtest.BeforeAt(5 * time.Second)})
	return l
}

// listEvents prints the events of newEventLog as podd events with the flags in c does.
func listEvents(t *testing.T, c *EventsCmd, color bool) (out, stderr string) {
	t.Helper()
	var b, e bytes.Buffer
	table := eventPrinter{EventsCmd: c, now: func() time.Time { return poddtest.At }, useColor: color}
	all, revision := newEventLog().Events(0)
	list := &v1.EventList{}
	list.APIVersion, list.ResourceVersion = "v1", fmt.Sprint(revision)
	for _, one := range all {
		list.Items = append(list.Items, *one)
	}
	if err := table.print(list, iostreams.Streams{Out: &b, Err: &e}); err != nil {
		t.Fatal(err)
	}
	return b.String(), e.String()
}

func TestEvents_Goldens(t *testing.T) {
	everywhere := ListScope{AllNamespaces: true}
	for name, c := range map[string]struct {
		cmd   EventsCmd
		color bool
	}{
		"events":           {cmd: EventsCmd{ListScope: everywhere}},
		"events_default":   {},
		"events_wide":      {cmd: EventsCmd{Output: "wide", ListScope: everywhere}},
		"events_colored":   {color: true, cmd: EventsCmd{ListScope: everywhere}},
		"events_name":      {cmd: EventsCmd{Output: "name", ListScope: everywhere}},
		"events_yaml":      {cmd: EventsCmd{Output: "yaml", Pod: "shop/web"}},
		"events_namespace": {cmd: EventsCmd{ListScope: ListScope{Namespace: "default"}}},
		"events_pod":       {cmd: EventsCmd{Pod: "web-n1", ListScope: ListScope{Namespace: "shop"}}},
		"events_types":     {cmd: EventsCmd{Types: []string{"warning"}, ListScope: everywhere}},
		"events_none":      {cmd: EventsCmd{Pod: "absent"}},
		"events_pod_kind":  {cmd: EventsCmd{Pod: "pod/web", ListScope: ListScope{Namespace: "shop"}}},
		"events_nowhere":   {cmd: EventsCmd{ListScope: ListScope{Namespace: "nowhere"}}},
	} {
		out, stderr := listEvents(t, &c.cmd, c.color)
		compareGolden(t, name, out+"-- stderr --\n"+stderr)
	}
}

// TestEvents_Path checks that podd events, why and describe show the path at the beginning of a message
// relative to the working directory, as all other paths.
func TestEvents_Path(t *testing.T) {
	web := poddtest.SetRunning(poddtest.NewPod("web.yaml", 4, "web", "app"))
	web.Pod.UID = "u"
	e := v1.Event{
		Type: v1.EventTypeWarning, Reason: "FailedValidation", Message: "/etc/podd/web.yaml:3:5: image: required", Count: 1,
		InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: web.Pod.Namespace, Name: web.Pod.Name, UID: "u"}, LastTimestamp: *poddtest.MetaTimeBeforeAt(time.Second),
	}
	table := eventPrinter{EventsCmd: &EventsCmd{}, now: func() time.Time { return poddtest.At }, workingDir: "/etc/podd"}
	why := explainer{view: poddtest.NewView(web), workingDir: "/etc/podd", now: poddtest.At, events: []v1.Event{e}, lastLogLine: func(server.Key, string) string { return "" }}
	d := &description{now: poddtest.At, workingDir: "/etc/podd", events: []v1.Event{e}, explainState: func(server.Key) string { return "" }}
	d.writePod(web.Pod)
	for verb, text := range map[string]string{
		"events": strings.Join(table.cells(&e), " "), "why": why.explain(subject{key: web.Key()}), "describe": d.String(),
	} {
		if !strings.Contains(text, " web.yaml:3:5: image: required") {
			t.Errorf("podd %s: got %q, want the path relative to the working directory", verb, text)
		}
	}
}

// TestEvents_JSON checks that the JSON output is a List, even if there are no events.
func TestEvents_JSON(t *testing.T) {
	for pod, want := range map[string]int{"": 3, "absent": 0} {
		out, _ := listEvents(t, &EventsCmd{Output: "json", Pod: pod, ListScope: ListScope{AllNamespaces: pod == ""}}, false)
		var list struct {
			Kind  string     `json:"kind"`
			Items []v1.Event `json:"items"`
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil || list.Kind != "List" || list.Items == nil || len(list.Items) != want {
			t.Errorf("pod %q: got error %v, output %s; want a List of %d events", pod, err, out, want)
		}
	}
}

// TestEvents_Watch checks that podd events --watch prints the header once, and then each event of the
// selected namespace.
func TestEvents_Watch(t *testing.T) {
	all, _ := newEventLog().Events(0)
	for _, format := range []string{"", "json"} {
		table := eventPrinter{EventsCmd: &EventsCmd{Watch: true, Output: format, ListScope: ListScope{Namespace: "default"}}, now: func() time.Time { return poddtest.At }}
		var b bytes.Buffer
		for _, e := range all {
			if err := table.printIfSelected(e, &b); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(b.String(), "LAST SEEN"); format == "" && (n != 1 || strings.Count(b.String(), "\n") != 3) {
			t.Errorf("table: got\n%s\nwant one header and two rows", b.String())
		}
		if format == "json" && strings.Count(b.String(), `"kind": "Event"`) != 2 {
			t.Errorf("JSON: got\n%s\nwant two Events", b.String())
		}
	}
}
