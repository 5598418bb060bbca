package cri

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

const (
	// eventDelay is the delay between an event and the pass that observes its pod. The exit of a
	// container that is not Foreign is observed without a delay. All other changes are usually made
	// by podd's own effects, which return their results themselves. In a burst of pods a shorter
	// delay would cause several queries per pod. The delay also gives containerd time to remove a
	// sandbox, because it sends the event before the removal. If there are many pods, the delay is
	// longer; see settleDelay.
	eventDelay = time.Second
	// streamTrustDelay is how long a stream must stay open before it is considered reliable even if
	// no event has arrived. The delay is needed because containerd sends nothing before the first
	// event, not even headers.
	streamTrustDelay = time.Second
	// newConnectionCheckInterval is the interval of checks for a new connection while the runtime
	// does not implement events.
	newConnectionCheckInterval = 5 * time.Second
)

// An eventStream is the state of the event subscription. The event reader updates it.
type eventStream struct {
	mu       sync.Mutex // guards all following fields
	openedAt time.Time  // zero if no stream is open
	hasEvent bool       // whether an event has arrived on this stream
}

// recordOpen records that a stream was opened.
func (s *eventStream) recordOpen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openedAt, s.hasEvent = time.Now(), false
}

// recordEvent records that an event has arrived.
func (s *eventStream) recordEvent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasEvent = true
}

// recordClose records that the stream was closed.
func (s *eventStream) recordClose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openedAt, s.hasEvent = time.Time{}, false
}

// isReliable reports whether the runtime is expected to send an event for every change. now is the
// current time.
func (s *eventStream) isReliable(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasEvent || !s.openedAt.IsZero() && now.Sub(s.openedAt) >= streamTrustDelay
}

// readEvents subscribes to events until ctx is done. It subscribes again if the stream ends.
func (o *Observer) readEvents(ctx context.Context) {
	for tries := 1; ; tries++ {
		dials, start := o.client.dialCount.Load(), time.Now()
		err := o.readStream(ctx)
		o.stream.recordClose()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, runtime.ErrUnimplemented) {
			if !o.awaitNewConnection(ctx, dials) {
				return
			}
			tries = 0
			continue
		}
		o.marks.markAll(0)
		if time.Since(start) > streamTrustDelay {
			tries = 1
		}
		if !pause(ctx, backOff(tries, 100*time.Millisecond, retryLimit(err))) {
			return
		}
	}
}

// retryLimit returns the maximum interval of attempts to subscribe. It is short for an unreachable
// runtime, which may become reachable at any time. It is long for a runtime that closes every
// stream, because a new attempt will probably have the same result.
func retryLimit(err error) time.Duration {
	if errors.Is(err, runtime.ErrUnavailable) {
		return time.Second
	}
	return time.Minute
}

// awaitNewConnection waits until the client has made a new connection. Only a restarted or
// upgraded runtime can implement a call that it did not implement before. It returns false
// if ctx is done first.
func (o *Observer) awaitNewConnection(ctx context.Context, dials uint64) bool {
	for o.client.dialCount.Load() == dials {
		if !pause(ctx, newConnectionCheckInterval) {
			return false
		}
	}
	return true
}

// readStream subscribes once and marks pods until the stream is closed. First it marks every pod,
// because the runtime sends no events for changes before the subscription, except those that
// containerd has queued.
func (o *Observer) readStream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := o.client.subscribe(ctx)
	if err != nil {
		return o.client.convertError(ctx, err)
	}
	o.stream.recordOpen()
	o.marks.markAll(0)
	for {
		var e wireEvent
		err := events.RecvMsg(&e)
		if errors.Is(err, io.EOF) {
			if o.stream.isReliable(time.Now()) {
				return err
			}
			// A stream that the runtime closes at once counts as unimplemented. CRI-O closes
			// streams at once unless enable_pod_events is set.
			return runtime.ErrUnimplemented
		}
		if err != nil {
			return o.client.convertError(ctx, err)
		}
		o.stream.recordEvent()
		o.handleEvent(e)
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

// handleEvent marks the pod of an event. The type of the event determines only the delay.
func (o *Observer) handleEvent(e wireEvent) {
	delay := o.nonUrgentDelay()
	if e.kind == uint64(api.ContainerEventType_CONTAINER_STOPPED_EVENT) && (e.name == "" || o.opts.isOurs(e.instance)) {
		delay = 0
	}
	if e.name == "" {
		o.marks.markAll(delay)
		return
	}
	o.marks.markPod(types.NamespacedName{Namespace: e.namespace, Name: e.name}, delay)
}

// nonUrgentDelay returns the delay between a change that is not urgent and the pass that
// observes it.
func (o *Observer) nonUrgentDelay() time.Duration {
	return max(eventDelay, time.Duration(o.settleDelay.Load()))
}

// pause waits for d and returns true. It returns false if ctx is done first.
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
