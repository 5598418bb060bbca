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

// teller has the cluster know of what happened. Package events has put together what
// repeats; of an event that goes on the API server is sent the count, as often as the
// spam filter lets it. It never holds anybody up: what the log has dropped before it
// was sent, or has become old, is not sent, nor again what the API server is long over.
type teller struct {
	c    *client
	log  server.EventLog
	sent map[string]bool // events that the API server has, by namespace and name
	spam spamFilter
}

// mostOld is how long ago an event may have happened that the cluster is told of: as
// much as it was away.
const mostOld = 10 * time.Minute

// mostSent bounds what is remembered; the log keeps fewer.
const mostSent = 4096

func newTeller(c *client, log server.EventLog) *teller {
	return &teller{c: c, log: log, sent: map[string]bool{}, spam: spamFilter{}}
}

// run does so until ctx is done.
func (t *teller) run(ctx context.Context) {
	var known uint64
	for {
		newer, revision := t.log.Events(known)
		for _, e := range newer {
			if !t.tell(ctx, e) {
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

// tell sends an event, again and again until somebody answers; false: ctx is done.
func (t *teller) tell(ctx context.Context, e *v1.Event) bool {
	if !t.spam.lets(e, time.Now()) {
		return true
	}
	var b backoff
	for time.Since(e.LastTimestamp.Time) < mostOld {
		err, late := t.send(ctx, e)
		if ctx.Err() != nil {
			return false
		}
		if err == nil || answered(err) || late {
			return true // what is refused now will be again, or waits for a webhook
		}
		if !sleep(ctx, b.next()) {
			return false
		}
	}
	return true
}

// send makes the event within writeTime; late is that there was no answer.
func (t *teller) send(ctx context.Context, e *v1.Event) (err error, late bool) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	err = t.put(ctx, e)
	return err, err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// put makes the event, or tells of its count where the API server has it.
func (t *teller) put(ctx context.Context, e *v1.Event) error {
	name := e.Namespace + "/" + e.Name
	if t.sent[name] {
		err := t.again(ctx, e)
		if !apierrors.IsNotFound(err) {
			return err
		}
		// They last for an hour.
	}
	e.ObjectMeta = metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}
	err := t.c.answer(ctx, t.c.events.Post().Namespace(e.Namespace).Resource("events").Body(e), nil)
	if apierrors.IsAlreadyExists(err) { // an answer was lost, or it is another life's
		err = t.again(ctx, e)
	}
	if err == nil {
		if len(t.sent) >= mostSent {
			clear(t.sent)
		}
		t.sent[name] = true
	}
	return err
}

// again tells that an event repeated itself.
func (t *teller) again(ctx context.Context, e *v1.Event) error {
	body, err := json.Marshal(map[string]any{"count": e.Count, "lastTimestamp": e.LastTimestamp, "message": e.Message})
	if err != nil {
		return err
	}
	return t.c.answer(ctx, t.c.events.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(body), nil)
}
