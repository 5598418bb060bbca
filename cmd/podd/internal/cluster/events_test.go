package cluster

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/server/events"
)

// withEvents returns a function for runNode that makes the node send the events in log.
func withEvents(log *events.Log) func(*testNode, *Options) {
	return func(_ *testNode, o *Options) { o.Events, o.Client.EventQPS, o.Client.EventBurst = log, 50, 100 }
}

// storedEvents returns the events in the API server by name.
func (l *testNode) storedEvents() map[string]*v1.Event {
	l.fakeAPI.mu.Lock()
	defer l.fakeAPI.mu.Unlock()
	return l.events
}

// newContainerEvent returns a warning event about the container "main" of the pod "web-n1".
func newContainerEvent(reason, message string) events.Occurrence {
	return events.Occurrence{
		Type: v1.EventTypeWarning, Reason: reason, Message: message, Time: time.Now(),
		Pod: types.NamespacedName{Namespace: "default", Name: "web-n1"}, UID: "hash", FieldPath: "spec.containers{main}",
	}
}

// TestEventSender checks that podd stores a repeated event once, with its count, and stores it again
// if the API server has deleted it.
func TestEventSender(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	runNode(t, withEvents(log), func(l *testNode) {
		for range 3 {
			log.Add(newContainerEvent("BackOff", "again"))
			l.advance(time.Second)
		}
		log.Add(events.Occurrence{Type: v1.EventTypeNormal, Reason: "Starting", Message: "Starting kubelet.", Time: time.Now()})
		l.advance(time.Second)
		n := l.countRequests("POST events", "PATCH events")
		if len(l.storedEvents()) != 2 || n[0] != 2 || n[1] != 2 {
			t.Fatalf("got events %v after %v requests, want 2 events after 2 POSTs and 2 PATCHes", l.storedEvents(), n)
		}
		for _, e := range l.storedEvents() {
			switch {
			case e.Reason == "BackOff" && e.Count == 3 && e.InvolvedObject.UID == "hash" && e.InvolvedObject.FieldPath == "spec.containers{main}":
			case e.Reason == "Starting" && e.Namespace == "default" && e.InvolvedObject.Kind == "Node" && e.Source.Component == "kubelet" && e.Source.Host == "n1" && e.ReportingController == "kubelet":
			default:
				t.Errorf("got event %+v, want BackOff of the container with count 3, or Starting of the Node n1 with source kubelet", e)
			}
		}
		// The API server deletes events after an hour.
		l.change(func() { l.fakeAPI.events = nil })
		log.Add(newContainerEvent("BackOff", "again"))
		l.advance(time.Second)
		if len(l.storedEvents()) != 1 {
			t.Errorf("repeated after its deletion: got events %v, want 1 event", l.storedEvents())
		}
	})
}

// TestEventSender_Annotations checks that a stored event has the annotations of the event in the log.
func TestEventSender_Annotations(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	runNode(t, withEvents(log), func(l *testNode) {
		n := newContainerEvent("Evicted", "The node was low on resource: memory.")
		n.Annotations = map[string]string{"starved_resource": "memory"}
		log.Add(n)
		l.advance(time.Second)
		for name, e := range l.storedEvents() {
			if !maps.Equal(e.Annotations, n.Annotations) {
				t.Errorf("event %s: got annotations %q, want %q", name, e.Annotations, n.Annotations)
			}
		}
		if len(l.storedEvents()) != 1 {
			t.Errorf("got events %v, want 1 event", l.storedEvents())
		}
	})
}

// TestEventSender_SpamFilter checks that podd limits the rate of events about one object.
func TestEventSender_SpamFilter(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	runNode(t, withEvents(log), func(l *testNode) {
		for range 3600 {
			log.Add(newContainerEvent("BackOff", "again"))
			l.advance(time.Second)
		}
		if n := l.countRequests("POST events", "PATCH events"); n[0] != 1 || n[1] < 34 || n[1] > 37 {
			t.Errorf("one event per second for an hour: got %d POSTs, %d PATCHes; want 1 and 34 to 37", n[0], n[1])
		}
	})
}

// TestEventSender_Outage checks that podd sends the events of an outage after the outage, except events
// that are older than maxEventAge.
func TestEventSender_Outage(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	prepare := func(l *testNode, o *Options) {
		withEvents(log)(l, o)
		l.fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	}
	runNode(t, prepare, func(l *testNode) {
		for i := range 10 {
			log.Add(newContainerEvent(fmt.Sprint("Reason", i), "m"))
			l.advance(2 * time.Minute)
		}
		l.change(func() { l.fault = nil })
		l.advance(10 * time.Second)
		if n := len(l.storedEvents()); n < 3 || n > 5 {
			t.Errorf("10 events in an outage of 20m: got %d events after the outage, want 3 to 5: %v", n, l.storedEvents())
		}
	})
}

// TestEventSender_SlowWebhook checks that podd sends an event despite a slow admission webhook. A
// webhook that never returns must not delay further events for longer than apiserver.WriteTimeout.
func TestEventSender_SlowWebhook(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	runNode(t, withEvents(log), func(l *testNode) {
		webhook := 25 * time.Second
		l.change(func() {
			l.fault = func(q *http.Request) (*http.Response, error) {
				if !strings.Contains(q.URL.Path, "/namespaces/default/events") {
					return nil, nil
				}
				select {
				case <-q.Context().Done():
					return nil, q.Context().Err()
				case <-time.After(webhook):
				}
				return nil, nil
			}
		})
		log.Add(newContainerEvent("Slow", "m"))
		l.advance(30 * time.Second)
		if len(l.storedEvents()) != 1 {
			t.Fatalf("slow webhook: got events %v, want 1 event", l.storedEvents())
		}
		l.change(func() { webhook = time.Hour })
		log.Add(newContainerEvent("Hangs", "m"))
		other := newContainerEvent("Other", "m")
		other.Pod.Namespace = "other"
		log.Add(other)
		l.advance(apiserver.WriteTimeout + time.Second)
		if len(l.storedEvents()) != 2 {
			t.Errorf("hanging webhook: got events %v, want the events Slow and Other", l.storedEvents())
		}
	})
}
