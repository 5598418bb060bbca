// Package eventsender sends the events of this node to the API server.
package eventsender

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/server"
)

// A Sender sends events to the API server. If an event is repeated, package events increases
// the count of the event. The Sender updates the count in the API server as often as the spam
// filter allows. It does not send an event that is older than maxEventAge or that the event log has
// dropped. It does not retry if the API server rejects the event or does not respond within
// apiserver.WriteTimeout.
type Sender struct {
	c          *apiserver.Client
	log        server.EventLog
	nodeUID    func() *types.UID
	storedKeys map[string]bool // keys of events that the API server stores
	filter     spamFilter
}

// maxEventAge is the maximum age of an event that is sent. After an outage, for example, older
// events are not sent.
const maxEventAge = 10 * time.Minute

// maxStoredKeys limits the number of entries in Sender.storedKeys. It exceeds the number of
// events in the event log.
const maxStoredKeys = 4096

// New returns a Sender that sends the events of log with the client c. nodeUID returns the UID of the
// Node, or nil if the Node does not exist. Only Run calls it.
func New(c *apiserver.Client, log server.EventLog, nodeUID func() *types.UID) *Sender {
	return &Sender{c: c, log: log, nodeUID: nodeUID, storedKeys: map[string]bool{}, filter: spamFilter{}}
}

// Run sends events until ctx is done.
func (s *Sender) Run(ctx context.Context) {
	var handledRevision uint64 // revision of the event log up to which all events were handled
	for {
		newer, revision := s.log.Events(handledRevision)
		for _, e := range newer {
			if !s.deliver(ctx, e) {
				return
			}
		}
		handledRevision = revision
		select {
		case <-s.log.Changed(handledRevision):
		case <-ctx.Done():
			return
		}
	}
}

// deliver sends an event and retries until the API server responds or the event is too old. It
// returns false if ctx is done.
func (s *Sender) deliver(ctx context.Context, e *v1.Event) bool {
	if !s.filter.allows(e, time.Now()) {
		return true
	}
	var b backoff.Backoff
	for time.Since(e.LastTimestamp.Time) < maxEventAge {
		timedOut, err := s.send(ctx, e)
		if ctx.Err() != nil {
			return false
		}
		if err == nil || apiserver.IsAPIError(err) || timedOut {
			return true // a retry would be rejected again, or wait for a webhook again
		}
		if !backoff.Sleep(ctx, b.Next()) {
			return false
		}
	}
	return true
}

// send sends an event once. If timedOut is true, there was no response within apiserver.WriteTimeout.
func (s *Sender) send(ctx context.Context, e *v1.Event) (timedOut bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiserver.WriteTimeout)
	defer cancel()
	err = s.createOrPatch(ctx, e)
	return err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded), err
}

// createOrPatch creates the event, or updates its count if it exists in the API server.
func (s *Sender) createOrPatch(ctx context.Context, e *v1.Event) error {
	name := e.Namespace + "/" + e.Name
	if s.storedKeys[name] {
		err := s.patchCount(ctx, e)
		if !apierrors.IsNotFound(err) {
			return err
		}
		// The API server has deleted the event, by default after an hour. Create it again.
	}
	e.ObjectMeta = metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, Annotations: e.Annotations}
	if uid := s.nodeUID(); uid != nil && e.InvolvedObject.Kind == "Node" {
		e.InvolvedObject.UID = *uid
	}
	err := s.c.DoWithoutTimeout(ctx, s.c.Events.Post().Namespace(e.Namespace).Resource("events").Body(e), nil)
	if apierrors.IsAlreadyExists(err) { // the response to an earlier request was lost, or an earlier podd process created the event
		err = s.patchCount(ctx, e)
	}
	if err == nil {
		if len(s.storedKeys) >= maxStoredKeys {
			clear(s.storedKeys)
		}
		s.storedKeys[name] = true
	}
	return err
}

// patchCount updates the count of a repeated event.
func (s *Sender) patchCount(ctx context.Context, e *v1.Event) error {
	body, err := json.Marshal(map[string]any{"count": e.Count, "lastTimestamp": e.LastTimestamp, "message": e.Message})
	if err != nil {
		return err
	}
	return s.c.DoWithoutTimeout(ctx, s.c.Events.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(body), nil)
}
