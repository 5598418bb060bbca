package eventsender

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/server/events"
)

// eventServer is an API server that stores events. It implements http.RoundTripper.
type eventServer struct {
	mu             sync.Mutex           // guards all following fields
	events         map[string]*v1.Event // by name
	posts, patches int                  // number of requests
	// fault returns the response to a request, or nil and nil if the eventServer must handle the request.
	// fault may be nil.
	fault func(*http.Request) (*http.Response, error)
	// nodeUID is the UID of the Node; nil if the Node does not exist.
	nodeUID atomic.Pointer[types.UID]
}

// RoundTrip creates or patches an event.
func (s *eventServer) RoundTrip(q *http.Request) (*http.Response, error) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		if r, err := fault(q); r != nil || err != nil {
			return r, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	e := clustertest.MustDecode[v1.Event](body)
	switch q.Method {
	case http.MethodPatch:
		s.patches++
		old := s.events[path.Base(q.URL.Path)]
		if old == nil {
			return clustertest.ErrorResponse(apierrors.NewNotFound(v1.Resource("events"), path.Base(q.URL.Path))), nil
		}
		e.ObjectMeta, e.Reason, e.InvolvedObject = old.ObjectMeta, old.Reason, old.InvolvedObject
	case http.MethodPost:
		s.posts++
		if s.events[e.Name] != nil {
			return clustertest.ErrorResponse(apierrors.NewAlreadyExists(v1.Resource("events"), e.Name)), nil
		}
	default:
		return clustertest.ErrorResponse(apierrors.NewMethodNotSupported(v1.Resource("events"), q.Method)), nil
	}
	e.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}
	s.events = maps.Clone(s.events)
	s.events[e.Name] = e
	return clustertest.Response(200, e), nil
}

// stored returns the events by name.
func (s *eventServer) stored() map[string]*v1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

// takeRequests returns the numbers of requests since the last call.
func (s *eventServer) takeRequests() (posts, patches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	posts, patches, s.posts, s.patches = s.posts, s.patches, 0, 0
	return posts, patches
}

// change calls f while it holds mu.
func (s *eventServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// runSender starts a Sender of the events in log in a synctest bubble and calls test.
func runSender(t *testing.T, test func(t *testing.T, s *eventServer, log *events.Log)) {
	synctest.Test(t, func(t *testing.T) {
		s, log := &eventServer{events: map[string]*v1.Event{}}, events.New(events.Options{Node: "n1"})
		ctx, cancel := context.WithCancel(t.Context())
		var part sync.WaitGroup
		part.Go(func() {
			New(clustertest.NewClient(t, s, apiserver.Options{EventQPS: 50, EventBurst: 100}), log, s.nodeUID.Load).Run(ctx)
		})
		test(t, s, log)
		cancel()
		part.Wait()
	})
}

// newContainerEvent returns a warning event about the container "main" of the pod "web-n1".
func newContainerEvent(reason, message string) events.Occurrence {
	return events.Occurrence{
		Type: v1.EventTypeWarning, Reason: reason, Message: message, Time: time.Now(),
		Pod: types.NamespacedName{Namespace: "default", Name: "web-n1"}, UID: "hash", FieldPath: "spec.containers{main}",
	}
}

// TestSender checks that podd stores a repeated event once, with its count, and stores it again
// if the API server has deleted it.
func TestSender(t *testing.T) {
	runSender(t, func(t *testing.T, s *eventServer, log *events.Log) {
		for range 3 {
			log.Add(newContainerEvent("BackOff", "again"))
			clustertest.Advance(time.Second)
		}
		log.Add(events.Occurrence{Type: v1.EventTypeNormal, Reason: "Starting", Message: "Starting kubelet.", Time: time.Now()})
		clustertest.Advance(time.Second)
		posts, patches := s.takeRequests()
		if len(s.stored()) != 2 || posts != 2 || patches != 2 {
			t.Fatalf("got events %v after %d POSTs, %d PATCHes; want 2 events after 2 POSTs and 2 PATCHes", s.stored(), posts, patches)
		}
		for _, e := range s.stored() {
			switch {
			case e.Reason == "BackOff" && e.Count == 3 && e.InvolvedObject.UID == "hash" && e.InvolvedObject.FieldPath == "spec.containers{main}":
			case e.Reason == "Starting" && e.Namespace == "default" && e.InvolvedObject.Kind == "Node" && e.Source.Component == "kubelet" && e.Source.Host == "n1" && e.ReportingController == "kubelet":
			default:
				t.Errorf("got event %+v, want BackOff of the container with count 3, or Starting of the Node n1 with source kubelet", e)
			}
		}
		// The API server deletes events after an hour.
		s.change(func() { s.events = map[string]*v1.Event{} })
		log.Add(newContainerEvent("BackOff", "again"))
		clustertest.Advance(time.Second)
		if len(s.stored()) != 1 {
			t.Errorf("repeated after its deletion: got events %v, want 1 event", s.stored())
		}
	})
}

// TestSender_NodeUID checks that an event of the node has the UID of the Node if the Node exists, and
// otherwise the name of the node as the UID. Events of pods have the UIDs of the pods.
func TestSender_NodeUID(t *testing.T) {
	runSender(t, func(t *testing.T, s *eventServer, log *events.Log) {
		add := func(reason string) {
			log.Add(events.Occurrence{Type: v1.EventTypeNormal, Reason: reason, Time: time.Now()}, newContainerEvent(reason+"Pod", "m"))
			clustertest.Advance(time.Second)
		}
		add("Starting")
		s.nodeUID.Store(new(types.UID("u1")))
		add("NodeReady")
		s.nodeUID.Store(new(types.UID("u2"))) // the Node was deleted and created again
		add("Rebooted")
		got := map[string]types.UID{}
		for _, e := range s.stored() {
			got[e.Reason] = e.InvolvedObject.UID
		}
		want := map[string]types.UID{"Starting": "n1", "NodeReady": "u1", "Rebooted": "u2", "StartingPod": "hash", "NodeReadyPod": "hash", "RebootedPod": "hash"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("UIDs of the involved objects by reason (-want +got):\n%s", diff)
		}
	})
}

// TestSender_Annotations checks that a stored event has the annotations of the event in the log.
func TestSender_Annotations(t *testing.T) {
	runSender(t, func(t *testing.T, s *eventServer, log *events.Log) {
		n := newContainerEvent("Evicted", "The node was low on resource: memory.")
		n.Annotations = map[string]string{"starved_resource": "memory"}
		log.Add(n)
		clustertest.Advance(time.Second)
		for name, e := range s.stored() {
			if !maps.Equal(e.Annotations, n.Annotations) {
				t.Errorf("event %s: got annotations %q, want %q", name, e.Annotations, n.Annotations)
			}
		}
		if len(s.stored()) != 1 {
			t.Errorf("got events %v, want 1 event", s.stored())
		}
	})
}

// TestSender_SpamFilter checks that podd limits the rate of events about one object.
func TestSender_SpamFilter(t *testing.T) {
	runSender(t, func(t *testing.T, s *eventServer, log *events.Log) {
		for range 3600 {
			log.Add(newContainerEvent("BackOff", "again"))
			clustertest.Advance(time.Second)
		}
		if posts, patches := s.takeRequests(); posts != 1 || patches < 34 || patches > 37 {
			t.Errorf("one event per second for an hour: got %d POSTs, %d PATCHes; want 1 and 34 to 37", posts, patches)
		}
	})
}

// TestSender_Outage checks that podd sends the events of an outage after the outage, except events
// that are older than maxEventAge.
func TestSender_Outage(t *testing.T) {
	runSender(t, func(t *testing.T, s *eventServer, log *events.Log) {
		s.change(func() {
			s.fault = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
		})
		for i := range 10 {
			log.Add(newContainerEvent(fmt.Sprint("Reason", i), "m"))
			clustertest.Advance(2 * time.Minute)
		}
		s.change(func() { s.fault = nil })
		clustertest.Advance(10 * time.Second)
		if n := len(s.stored()); n < 3 || n > 5 {
			t.Errorf("10 events in an outage of 20m: got %d events after the outage, want 3 to 5: %v", n, s.stored())
		}
	})
}

// TestSender_SlowWebhook checks that podd sends an event despite a slow admission webhook. A
// webhook that never returns must not delay further events for longer than apiserver.WriteTimeout.
func TestSender_SlowWebhook(t *testing.T) {
	runSender(t, func(t *testing.T, s *eventServer, log *events.Log) {
		webhook := 25 * time.Second
		s.change(func() {
			s.fault = func(q *http.Request) (*http.Response, error) {
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
		clustertest.Advance(30 * time.Second)
		if len(s.stored()) != 1 {
			t.Fatalf("slow webhook: got events %v, want 1 event", s.stored())
		}
		s.change(func() { webhook = time.Hour })
		log.Add(newContainerEvent("Hangs", "m"))
		other := newContainerEvent("Other", "m")
		other.Pod.Namespace = "other"
		log.Add(other)
		clustertest.Advance(apiserver.WriteTimeout + time.Second)
		if len(s.stored()) != 2 {
			t.Errorf("hanging webhook: got events %v, want the events Slow and Other", s.stored())
		}
	})
}

// TestSender_LostResponse checks that podd updates the count of an event that it has created, although it has
// not received the response.
func TestSender_LostResponse(t *testing.T) {
	runSender(t, func(t *testing.T, s *eventServer, log *events.Log) {
		s.change(func() {
			s.fault = func(q *http.Request) (*http.Response, error) {
				s.change(func() { s.fault = nil })
				if _, err := s.RoundTrip(q); err != nil {
					return nil, err
				}
				return nil, syscall.ECONNRESET
			}
		})
		log.Add(newContainerEvent("BackOff", "again"))
		clustertest.Advance(time.Minute)
		if posts, patches := s.takeRequests(); len(s.stored()) != 1 || posts != 2 || patches != 1 {
			t.Errorf("got events %v after %d POSTs, %d PATCHes; want 1 event after 2 POSTs and 1 PATCH", s.stored(), posts, patches)
		}
	})
}
