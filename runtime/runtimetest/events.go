package runtimetest

import (
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A feed sends events to subscribers. Without a subscriber, the feed stores events for the next
// subscriber, as containerd does. Unlike containerd, the feed never blocks on a slow subscriber.
// The lock of the Runtime guards it.
type feed struct {
	subscribers []*subscriber
	backlog     []*api.ContainerEventResponse
	isMuted     bool
}

type subscriber struct {
	queue    []*api.ContainerEventResponse
	changed  chan struct{} // receives a value when queue or hasEnded changes; capacity 1
	hasEnded bool
	err      error // error of the stream after its end; nil if the end was orderly
}

// wake makes GetContainerEvents check the queue.
func (s *subscriber) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (f *feed) breakLocked() { f.endLocked(errLost) }

// endLocked ends all streams with err, which is nil for an orderly end.
func (f *feed) endLocked(err error) {
	for _, s := range f.subscribers {
		s.hasEnded, s.err = true, err
		s.wake()
	}
	f.subscribers, f.backlog = nil, nil
}

// MuteEvents sets whether the runtime drops all events.
func (r *Runtime) MuteEvents(isMuted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feed.isMuted = isMuted
}

// BreakEvents breaks the connections of all event streams. Other calls are not affected.
func (r *Runtime) BreakEvents() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feed.breakLocked()
}

// EndEvents ends all event streams without an error, like a runtime that stops.
func (r *Runtime) EndEvents() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feed.endLocked(nil)
}

// SubscriberCount returns the number of open event streams.
func (r *Runtime) SubscriberCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.feed.subscribers)
}

// announceLocked sends an event about a sandbox. The event contains the current states of
// the sandbox and of its containers.
func (r *Runtime) announceLocked(kind api.ContainerEventType, id string, sb *sandbox) {
	if r.options.NoEvents || r.feed.isMuted || r.isDown {
		return
	}
	e := &api.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano(), PodSandboxStatus: sb.status(),
	}
	for _, c := range r.containersOfLocked(sb.id) {
		e.ContainersStatuses = append(e.ContainersStatuses, c.status())
	}
	if len(r.feed.subscribers) == 0 {
		r.feed.backlog = append(r.feed.backlog, e)
		return
	}
	for _, s := range r.feed.subscribers {
		s.queue = append(s.queue, e)
		s.wake()
	}
}

func (s *service) GetContainerEvents(_ *api.GetEventsRequest, stream api.RuntimeService_GetContainerEventsServer) error {
	if s.options.NoEvents && s.options.CRIO {
		return nil // closes the stream at once, as CRI-O does without enable_pod_events
	}
	if s.options.NoEvents {
		return status.Error(codes.Unimplemented, "unknown method GetContainerEvents for service runtime.v1.RuntimeService")
	}
	sub := s.subscribe()
	defer s.unsubscribe(sub)
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-s.testContext.Done():
			return errLost
		case <-sub.changed:
		}
		events, hasEnded, err := s.takeEvents(sub)
		for _, e := range events {
			if err := stream.Send(e); err != nil {
				return err
			}
		}
		if hasEnded {
			return err
		}
	}
}

func (r *Runtime) subscribe() *subscriber {
	r.mu.Lock()
	defer r.mu.Unlock()
	sub := &subscriber{changed: make(chan struct{}, 1), queue: r.feed.backlog, hasEnded: r.isDown, err: errLost}
	r.feed.backlog = nil
	r.feed.subscribers = append(r.feed.subscribers, sub)
	sub.wake()
	return sub
}

func (r *Runtime) unsubscribe(sub *subscriber) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.feed.subscribers {
		if s == sub {
			r.feed.subscribers = append(r.feed.subscribers[:i:i], r.feed.subscribers[i+1:]...)
			return
		}
	}
}

// takeEvents removes and returns the queued events of a subscriber. hasEnded reports whether the
// stream of the subscriber has ended, and err is the error with which it ended.
func (r *Runtime) takeEvents(sub *subscriber) (events []*api.ContainerEventResponse, hasEnded bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, sub.queue = sub.queue, nil
	return events, sub.hasEnded, sub.err
}

// errLost is the error of a client after its connection broke.
var errLost = status.Error(codes.Unavailable, "error reading from server: "+io.EOF.Error())
