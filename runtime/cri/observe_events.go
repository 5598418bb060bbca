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
	// eventDelay is the delay after an event other than the exit of one of our containers:
	// usually podd caused the change itself, and its effects report their own success. In a
	// burst of pods a shorter delay would query the runtime several times per pod. It also
	// gives containerd time to remove a sandbox, because its event comes before the
	// removal. The delay is longer if there are many pods, see afterPass.
	eventDelay = time.Second
	// streamTrustDelay is how long a stream without events must stay open to count as served:
	// containerd sends nothing, not even headers, before the first event.
	streamTrustDelay = time.Second
	// absentRetry is the interval of checks for a new connection to a runtime without
	// events.
	absentRetry = 5 * time.Second
)

// stream is the state of the subscription, written by its reader.
type stream struct {
	mu       sync.Mutex // guards all following fields
	openedAt time.Time  // zero: no stream is open
	hasEvent bool       // an event has arrived on this stream
}

func (s *stream) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openedAt, s.hasEvent = time.Now(), false
}

func (s *stream) event() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasEvent = true
}

func (s *stream) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openedAt, s.hasEvent = time.Time{}, false
}

// served reports whether events are reliable at now.
func (s *stream) served(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasEvent || !s.openedAt.IsZero() && now.Sub(s.openedAt) >= streamTrustDelay
}

// readEvents maintains a subscription until ctx is done.
func (o *Observer) readEvents(ctx context.Context) {
	for tries := 1; ; tries++ {
		dials, began := o.client.dials.Load(), time.Now()
		err := o.readStream(ctx)
		o.stream.closed()
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
		o.marks.all(0)
		if time.Since(began) > streamTrustDelay {
			tries = 1
		}
		if !pause(ctx, backOff(tries, 100*time.Millisecond, retryLimit(err))) {
			return
		}
	}
}

// retryLimit returns the maximum interval of attempts: an unreachable runtime may return at
// any time, and one that ends every stream will continue to do so.
func retryLimit(err error) time.Duration {
	if errors.Is(err, runtime.ErrUnavailable) {
		return time.Second
	}
	return time.Minute
}

// awaitNewConnection returns true when there is a new connection, because only a restarted
// or upgraded runtime can support what this one does not. It returns false if ctx is done.
func (o *Observer) awaitNewConnection(ctx context.Context, dials uint64) bool {
	for o.client.dials.Load() == dials {
		if !pause(ctx, absentRetry) {
			return false
		}
	}
	return true
}

// readStream subscribes once and marks pods until the stream ends. First it marks every
// pod, because earlier changes have no events, except those that containerd has queued.
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
		err := events.RecvMsg(&e)
		if errors.Is(err, io.EOF) {
			if o.stream.served(time.Now()) {
				return err
			}
			// CRI-O ends every stream at once unless enable_pod_events is set.
			return runtime.ErrUnimplemented
		}
		if err != nil {
			return o.client.clean(ctx, err)
		}
		o.stream.event()
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

// handleEvent marks the pod of an event. The kind of the event determines only the delay.
func (o *Observer) handleEvent(e wireEvent) {
	delay := o.settleTime()
	if e.kind == uint64(api.ContainerEventType_CONTAINER_STOPPED_EVENT) && (e.name == "" || o.opts.ours(e.instance)) {
		delay = 0
	}
	if e.name == "" {
		o.marks.all(delay)
		return
	}
	o.marks.pod(types.NamespacedName{Namespace: e.namespace, Name: e.name}, delay)
}

// settleTime returns how long a change that is not urgent waits for a pass.
func (o *Observer) settleTime() time.Duration { return max(eventDelay, time.Duration(o.settle.Load())) }

// pause waits for d. It returns false if ctx is done first.
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
