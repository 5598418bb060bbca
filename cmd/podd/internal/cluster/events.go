package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// An eventSender sends events to the API server. Package events aggregates repeated
// events; for those the eventSender updates the count, as often as the spam filter
// allows. Events that the log drops before they are sent, or that are too old, are not
// sent. An event that the API server rejects or does not accept in time is not retried.
type eventSender struct {
	c    *client
	log  server.EventLog
	sent map[string]bool // keys of events that the API server has
	spam spamFilter
}

// maxEventAge is the age up to which events are sent, for example after an outage.
const maxEventAge = 10 * time.Minute

// maxSent limits sent. The event log stores fewer events.
const maxSent = 4096

func newEventSender(c *client, log server.EventLog) *eventSender {
	return &eventSender{c: c, log: log, sent: map[string]bool{}, spam: spamFilter{}}
}

// run sends events until ctx is done.
func (t *eventSender) run(ctx context.Context) {
	var known uint64
	for {
		newer, revision := t.log.Events(known)
		for _, e := range newer {
			if !t.deliver(ctx, e) {
				return
			}
		}
		known = revision
		select {
		case <-t.log.Changed(known):
		case <-ctx.Done():
			return
		}
	}
}

// deliver sends an event until the API server responds. It returns false if ctx is done.
func (t *eventSender) deliver(ctx context.Context, e *v1.Event) bool {
	if !t.spam.allows(e, time.Now()) {
		return true
	}
	var b backoff
	for time.Since(e.LastTimestamp.Time) < maxEventAge {
		err, late := t.send(ctx, e)
		if ctx.Err() != nil {
			return false
		}
		if err == nil || isAPIError(err) || late {
			return true // a rejected event would be rejected again, or waits for a webhook
		}
		if !sleep(ctx, b.next()) {
			return false
		}
	}
	return true
}

// send sends an event within writeTime. late reports that there was no response.
func (t *eventSender) send(ctx context.Context, e *v1.Event) (err error, late bool) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	err = t.put(ctx, e)
	return err, err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// put creates the event, or updates its count if it exists in the API server.
func (t *eventSender) put(ctx context.Context, e *v1.Event) error {
	name := e.Namespace + "/" + e.Name
	if t.sent[name] {
		err := t.patchCount(ctx, e)
		if !apierrors.IsNotFound(err) {
			return err
		}
		// The API server deletes events after an hour.
	}
	e.ObjectMeta = metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}
	err := t.c.doUntil(ctx, t.c.events.Post().Namespace(e.Namespace).Resource("events").Body(e), nil)
	if apierrors.IsAlreadyExists(err) { // the response was lost, or an earlier process created it
		err = t.patchCount(ctx, e)
	}
	if err == nil {
		if len(t.sent) >= maxSent {
			clear(t.sent)
		}
		t.sent[name] = true
	}
	return err
}

// patchCount updates the count of a repeated event.
func (t *eventSender) patchCount(ctx context.Context, e *v1.Event) error {
	body, err := json.Marshal(map[string]any{"count": e.Count, "lastTimestamp": e.LastTimestamp, "message": e.Message})
	if err != nil {
		return err
	}
	return t.c.doUntil(ctx, t.c.events.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(body), nil)
}
