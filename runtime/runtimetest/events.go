package runtimetest

import (
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// feed hands events to subscribers. Without one it keeps them for the next, as
// containerd does. Unlike containerd it never waits for a slow one. The lock is
// the Runtime's.
type feed struct {
	subscribers []*subscriber
	backlog     []*api.ContainerEventResponse
	muted       bool
}

type subscriber struct {
	queue  []*api.ContainerEventResponse
	more   chan struct{} // holds one token while queue or broken changed
	broken bool
}

func (s *subscriber) nudge() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (f *feed) breakLocked() {
	for _, s := range f.subscribers {
		s.broken = true
		s.nudge()
	}
	f.subscribers, f.backlog = nil, nil
}

// MuteEvents makes events get lost; false ends that.
func (r *Runtime) MuteEvents(muted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feed.muted = muted
}

// BreakEvents ends every stream of events, and nothing else.
func (r *Runtime) BreakEvents() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feed.breakLocked()
}

// Subscribers is how many streams of events are open.
func (r *Runtime) Subscribers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.feed.subscribers)
}

// announceLocked makes an event, filled with what is so now.
func (r *Runtime) announceLocked(kind api.ContainerEventType, id string, sb *sandbox) {
	if r.options.NoEvents || r.feed.muted || r.isDown {
		return
	}
	e := &api.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano(), PodSandboxStatus: sb.status(),
	}
	for _, c := range r.inSandboxLocked(sb.id) {
		e.ContainersStatuses = append(e.ContainersStatuses, c.status())
	}
	if len(r.feed.subscribers) == 0 {
		r.feed.backlog = append(r.feed.backlog, e)
		return
	}
	for _, s := range r.feed.subscribers {
		s.queue = append(s.queue, e)
		s.nudge()
	}
}

func (s *service) GetContainerEvents(_ *api.GetEventsRequest, stream api.RuntimeService_GetContainerEventsServer) error {
	if s.options.NoEvents {
		return status.Error(codes.Unimplemented, "unknown method GetContainerEvents for service runtime.v1.RuntimeService")
	}
	sub := s.subscribe()
	defer s.unsubscribe(sub)
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-s.ended.Done():
			return errLost
		case <-sub.more:
		}
		events, broken := s.drain(sub)
		for _, e := range events {
			if err := stream.Send(e); err != nil {
				return err
			}
		}
		if broken {
			return errLost
		}
	}
}

func (r *Runtime) subscribe() *subscriber {
	r.mu.Lock()
	defer r.mu.Unlock()
	sub := &subscriber{more: make(chan struct{}, 1), queue: r.feed.backlog, broken: r.isDown}
	r.feed.backlog = nil
	r.feed.subscribers = append(r.feed.subscribers, sub)
	sub.nudge()
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

func (r *Runtime) drain(sub *subscriber) (events []*api.ContainerEventResponse, broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, sub.queue = sub.queue, nil
	return events, sub.broken
}

// errLost is what a client sees of a connection that broke.
var errLost = status.Error(codes.Unavailable, "error reading from server: "+io.EOF.Error())
