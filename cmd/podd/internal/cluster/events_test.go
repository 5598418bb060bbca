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

	"podd/server/events"
)

// withEvents makes a node send the events of a log.
func withEvents(log *events.Log) func(*testNode, *Options) {
	return func(_ *testNode, o *Options) { o.Events, o.EventQPS, o.EventBurst = log, 50, 100 }
}

// storedEvents returns the events in the API server by name.
func (l *testNode) storedEvents() map[string]*v1.Event {
	l.fakeAPI.mu.Lock()
	defer l.fakeAPI.mu.Unlock()
	return l.events
}

// note returns an event of a container.
func note(reason, message string) events.Occurrence {
	return events.Occurrence{
		Type: v1.EventTypeWarning, Reason: reason, Message: message, Time: time.Now(),
		Pod: types.NamespacedName{Namespace: "default", Name: "web-n1"}, UID: "hash", FieldPath: "spec.containers{main}",
	}
}

// TestEventSender checks that a repeated event is stored once, with its count.
func TestEventSender(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	runNode(t, withEvents(log), func(l *testNode) {
		for range 3 {
			log.Add(note("BackOff", "again"))
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
				t.Errorf("got event %+v, want the repeated event or the single event", e)
			}
		}
		// The API server deletes events after an hour.
		l.change(func() { l.fakeAPI.events = nil })
		log.Add(note("BackOff", "again"))
		l.advance(time.Second)
		if len(l.storedEvents()) != 1 {
			t.Errorf("after the deletion: got %v, want 1 event", l.storedEvents())
		}
	})
}

// TestEventSender_Annotations checks that a stored event has the annotations of the event in the log.
func TestEventSender_Annotations(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	runNode(t, withEvents(log), func(l *testNode) {
		n := note("Evicted", "The node was low on resource: memory.")
		n.Annotations = map[string]string{"starved_resource": "memory"}
		log.Add(n)
		l.advance(time.Second)
		for name, e := range l.storedEvents() {
			if !maps.Equal(e.Annotations, n.Annotations) {
				t.Errorf("event %s: got the annotations %q, want %q", name, e.Annotations, n.Annotations)
			}
		}
		if len(l.storedEvents()) != 1 {
			t.Errorf("got events %v, want 1", l.storedEvents())
		}
	})
}

// TestEventSender_SpamFilter checks that events of one object are rate-limited.
func TestEventSender_SpamFilter(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	runNode(t, withEvents(log), func(l *testNode) {
		for range 3600 {
			log.Add(note("BackOff", "again"))
			l.advance(time.Second)
		}
		if n := l.countRequests("POST events", "PATCH events"); n[0] != 1 || n[1] < 34 || n[1] > 37 {
			t.Errorf("got %v requests, want 1 POST and 34 to 37 PATCHes", n)
		}
	})
}

// TestEventSender_Outage checks that events of an outage are sent after the outage, except events
// older than maxEventAge.
func TestEventSender_Outage(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	prepare := func(l *testNode, o *Options) {
		withEvents(log)(l, o)
		l.fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	}
	runNode(t, prepare, func(l *testNode) {
		for i := range 10 {
			log.Add(note(fmt.Sprint("Reason", i), "m"))
			l.advance(2 * time.Minute)
		}
		l.change(func() { l.fault = nil })
		l.advance(10 * time.Second)
		if n := len(l.storedEvents()); n < 3 || n > 5 {
			t.Errorf("got %d events, want 3 to 5: %v", n, l.storedEvents())
		}
	})
}

// TestEventSender_SlowWebhook checks that an event is sent despite a slow webhook, and that a
// webhook that never returns does not delay other events for long.
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
		log.Add(note("Slow", "m"))
		l.advance(30 * time.Second)
		if len(l.storedEvents()) != 1 {
			t.Fatalf("slow webhook: got %v, want 1 event", l.storedEvents())
		}
		l.change(func() { webhook = time.Hour })
		log.Add(note("Hangs", "m"))
		other := note("Other", "m")
		other.Pod.Namespace = "other"
		log.Add(other)
		l.advance(writeTimeout + time.Second)
		if len(l.storedEvents()) != 2 {
			t.Errorf("hanging webhook: got %v, want 2 events", l.storedEvents())
		}
	})
}

// TestSpamFilter_Limit checks that the number of buckets is limited.
func TestSpamFilter_Limit(t *testing.T) {
	f, now := spamFilter{}, noon
	for i := range 3 * maxSpamBuckets {
		e := &v1.Event{Type: "Normal", InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: fmt.Sprint(i)}}
		now = now.Add(time.Millisecond)
		if !f.allows(e, now) {
			t.Fatalf("pod %d: got its first event rejected, want it allowed", i)
		}
	}
	if len(f) > maxSpamBuckets {
		t.Errorf("got %d buckets, want at most %d", len(f), maxSpamBuckets)
	}
}
