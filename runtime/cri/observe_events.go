package cri

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

const (
	// settle is how long a change may wait that is no end of a container of ours:
	// podd as a rule made it itself, and its effects report their own success.
	// In a burst of pods a shorter one has the runtime asked several times a pod.
	// It also gives containerd the time to forget a sandbox whose removal it
	// announces before it happens.
	settle = time.Second
	// trust is how long a silent stream must stay open to count as served:
	// containerd sends nothing, not even headers, before the first event.
	trust = time.Second
	// absentRetry is how often a runtime without events is asked again; a new
	// connection asks at once.
	absentRetry = 5 * time.Second
)

// stream is the state of the subscription; its reader writes it.
type stream struct {
	mu       sync.Mutex // guards all following fields
	openedAt time.Time  // zero: no stream is open
	heard    bool       // an event came on this stream
}

func (s *stream) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openedAt, s.heard = time.Now(), false
}

func (s *stream) event() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = true
}

func (s *stream) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openedAt, s.heard = time.Time{}, false
}

// served says that events can be relied on at now.
func (s *stream) served(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard || !s.openedAt.IsZero() && now.Sub(s.openedAt) >= trust
}

// readEvents keeps a subscription until ctx ends.
func (o *Observer) readEvents(ctx context.Context) {
	for tries := 1; ; tries++ {
		dials, began := o.client.dials.Load(), time.Now()
		err := o.readStream(ctx)
		o.stream.closed()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, runtime.ErrUnimplemented) {
			o.client.events.Store(eventsAbsent)
			if !o.awaitNewConnection(ctx, dials) {
				return
			}
			tries = 0
			continue
		}
		o.marks.all(0)
		if time.Since(began) > trust {
			tries = 1
		}
		if !pause(ctx, backOff(tries, 100*time.Millisecond, retryLimit(err))) {
			return
		}
	}
}

// retryLimit is how far apart attempts may get: a runtime that is down may be
// back any moment, one that ends every stream will go on doing so.
func retryLimit(err error) time.Duration {
	if errors.Is(err, runtime.ErrUnavailable) {
		return time.Second
	}
	return time.Minute
}

// awaitNewConnection returns true when the runtime was connected to anew: only
// another runtime serves what this one did not.
func (o *Observer) awaitNewConnection(ctx context.Context, dials uint64) bool {
	for o.client.dials.Load() == dials {
		if !pause(ctx, absentRetry) {
			return false
		}
	}
	return true
}

// readStream subscribes once and marks until the stream ends. Every pod is
// marked first: what happened before the subscription is not announced, except
// that containerd replays what it has queued.
func (o *Observer) readStream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := o.client.subscribe(ctx)
	if err != nil {
		return o.client.clean(ctx, err)
	}
	o.stream.opened()
	o.marks.all(0)
	for {
		var e wireEvent
		if err := events.RecvMsg(&e); err != nil {
			return o.client.clean(ctx, err)
		}
		o.stream.event()
		o.hear(e)
	}
}

// subscribe opens a stream of events.
func (c *Client) subscribe(ctx context.Context) (grpc.ClientStream, error) {
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "GetContainerEvents", ServerStreams: true},
		api.RuntimeService_GetContainerEvents_FullMethodName, grpc.ForceCodecV2(codec{}))
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(&api.GetEventsRequest{}); err != nil {
		return nil, err
	}
	return stream, stream.CloseSend()
}

// hear marks the pod that an event is about. Its kind only says how urgent it is.
func (o *Observer) hear(e wireEvent) {
	delay := settle
	if e.kind == uint64(api.ContainerEventType_CONTAINER_STOPPED_EVENT) && (e.name == "" || e.instance == o.opts.Instance) {
		delay = 0
	}
	if e.name == "" {
		o.marks.all(delay)
		return
	}
	o.marks.pod(types.NamespacedName{Namespace: e.namespace, Name: e.name}, delay)
}

// pause waits for d, or returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
