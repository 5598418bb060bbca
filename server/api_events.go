package server

import (
	"context"
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EventLog provides the events of pods and of the node. Its methods are safe for
// concurrent use, fast, and never block.
type EventLog interface {
	// Events returns the newest revision and the retained events with a revision greater than
	// afterRevision, in the order of their resourceVersions. A repeated event has a greater count,
	// a newer resourceVersion and the same name. If afterRevision is 0, Events returns all retained
	// events. The caller may modify the events.
	Events(afterRevision uint64) (events []*v1.Event, revision uint64)
	// Changed returns a channel that is closed as soon as the newest revision differs from
	// afterRevision.
	Changed(afterRevision uint64) <-chan struct{}
}

// events serves /v1/events.
func (a *API) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	watch, err := parseBool(q, "watch")
	var afterRevision uint64
	if s := q.Get("revision"); s != "" && err == nil {
		if afterRevision, err = strconv.ParseUint(s, 10, 64); err != nil {
			err = newParameterError("revision", s, "a number")
		}
	}
	switch {
	case err != nil:
		replyError(w, err)
	case watch:
		followEvents(r.Context(), a.Events, afterRevision, newLineWriter(w).send) // ignore an error: it means that the client has disconnected
	default:
		Reply(w, http.StatusOK, newEventList(a.Events.Events(afterRevision)))
	}
}

func newEventList(events []*v1.Event, revision uint64) *v1.EventList {
	list := &v1.EventList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(revision, 10)},
		Items:    make([]v1.Event, 0, len(events)),
	}
	for _, e := range events {
		list.Items = append(list.Items, *e)
	}
	return list
}

// followEvents calls send with every event with a revision greater than afterRevision. It calls
// send again when an event is repeated. Repetitions that occur while send runs are combined.
// followEvents returns when ctx is done or send fails.
func followEvents(ctx context.Context, log EventLog, afterRevision uint64, send func(any) error) error {
	for {
		newer, revision := log.Events(afterRevision)
		for _, e := range newer {
			if err := send(e); err != nil {
				return err
			}
		}
		afterRevision = revision
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-log.Changed(afterRevision):
		}
	}
}
