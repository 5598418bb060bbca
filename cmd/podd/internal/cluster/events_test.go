package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server/events"
)

// tells has podd know of events, with the fake's time.
func tells(log *events.Log) func(*life, *Options) {
	return func(_ *life, o *Options) { o.Events, o.EventQPS, o.EventBurst = log, 50, 100 }
}

// posted are the events that the cluster has.
func (l *life) posted() map[string]*v1.Event {
	l.fakeAPI.mu.Lock()
	defer l.fakeAPI.mu.Unlock()
	return l.events
}

func note(reason, message string) events.Note {
	return events.Note{
		Type: v1.EventTypeWarning, Reason: reason, Message: message, Time: time.Now(),
		Pod: types.NamespacedName{Namespace: "default", Name: "web-n1"}, UID: "hash", Field: "spec.containers{main}",
	}
}

// TestEvents: the cluster has each event once, with its count.
func TestEvents(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	alone(t, tells(log), func(l *life) {
		for range 3 {
			log.Add(note("BackOff", "again"))
			l.after(time.Second)
		}
		log.Add(events.Note{Type: v1.EventTypeNormal, Reason: "Starting", Message: "Starting kubelet.", Time: time.Now()})
		l.after(time.Second)
		n := l.count("POST events", "PATCH events")
		if len(l.posted()) != 2 || n[0] != 2 || n[1] != 2 {
			t.Fatalf("got %v, asked %v", l.posted(), n)
		}
		for _, e := range l.posted() {
			switch {
			case e.Reason == "BackOff" && e.Count == 3 && e.InvolvedObject.UID == "hash" && e.InvolvedObject.FieldPath == "spec.containers{main}":
			case e.Reason == "Starting" && e.Namespace == "default" && e.InvolvedObject.Kind == "Node" && e.Source.Component == "kubelet" && e.Source.Host == "n1" && e.ReportingController == "kubelet":
			default:
				t.Errorf("got %+v", e)
			}
		}
		// They last for an hour.
		l.with(func() { l.fakeAPI.events = nil })
		log.Add(note("BackOff", "again"))
		l.after(time.Second)
		if len(l.posted()) != 1 {
			t.Errorf("after an hour: %v", l.posted())
		}
	})
}

// TestEventsSpam: of one object the cluster is told little for long.
func TestEventsSpam(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	alone(t, tells(log), func(l *life) {
		for range 3600 {
			log.Add(note("BackOff", "again"))
			l.after(time.Second)
		}
		if n := l.count("POST events", "PATCH events"); n[0] != 1 || n[1] < 34 || n[1] > 37 {
			t.Errorf("asked %v times", n)
		}
	})
}

// TestEventsOutage: what happened while the cluster was away is told, but not what
// is old.
func TestEventsOutage(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	prepare := func(l *life, o *Options) {
		tells(log)(l, o)
		l.fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	}
	alone(t, prepare, func(l *life) {
		for i := range 10 {
			log.Add(note(fmt.Sprint("Reason", i), "m"))
			l.after(2 * time.Minute)
		}
		l.with(func() { l.fault = nil })
		l.after(10 * time.Second)
		if n := len(l.posted()); n < 3 || n > 5 {
			t.Errorf("got %d: %v", n, l.posted())
		}
	})
}

// TestEventsSlowWebhook: an event that a webhook has an API server wait with is told
// of after all, and one for which it never ends holds up no other for long.
func TestEventsSlowWebhook(t *testing.T) {
	log := events.New(events.Options{Node: "n1"})
	alone(t, tells(log), func(l *life) {
		webhook := 25 * time.Second
		l.with(func() {
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
		l.after(30 * time.Second)
		if len(l.posted()) != 1 {
			t.Fatalf("got %v", l.posted())
		}
		l.with(func() { webhook = time.Hour })
		log.Add(note("Hangs", "m"))
		other := note("Other", "m")
		other.Pod.Namespace = "other"
		log.Add(other)
		l.after(writeTime + time.Second)
		if len(l.posted()) != 2 {
			t.Errorf("got %v", l.posted())
		}
	})
}

// TestSpamBound: what is remembered is bounded, whoever makes objects.
func TestSpamBound(t *testing.T) {
	f, now := spamFilter{}, noon
	for i := range 3 * maxObjects {
		e := &v1.Event{Type: "Normal", InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: fmt.Sprint(i)}}
		now = now.Add(time.Millisecond)
		if !f.allows(e, now) {
			t.Fatal("the first of an object")
		}
	}
	if len(f) > maxObjects {
		t.Errorf("%d are remembered", len(f))
	}
}
