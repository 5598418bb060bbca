package server

import (
	"context"
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EventLog tells what happened to pods and to the node. Methods are safe for
// concurrent use, quick, and never block.
type EventLog interface {
	// Events are all that is kept and newer than a revision, in the order of their
	// resourceVersions, and the newest revision. What happened again has a greater
	// count, a newer resourceVersion and the same name. 0 is older than all. The
	// events are the caller's to keep and to change.
	Events(after uint64) (events []*v1.Event, revision uint64)
	// Changed is closed once the newest revision is another than after.
	Changed(after uint64) <-chan struct{}
}

func (a *API) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	watch, err := boolean(q, "watch")
	var known uint64
	if s := q.Get("revision"); s != "" && err == nil {
		if known, err = strconv.ParseUint(s, 10, 64); err != nil {
			err = badParameter("revision", s, "a number")
		}
	}
	switch {
	case err != nil:
		fail(w, err)
	case watch:
		followEvents(r.Context(), a.Events, known, newLines(w).send) // its error is the client's leaving
	default:
		Reply(w, http.StatusOK, eventList(a.Events.Events(known)))
	}
}

func eventList(events []*v1.Event, revision uint64) *v1.EventList {
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

// followEvents calls send with every event newer than known, again with each that
// happens again, until ctx is done or send fails. While send is busy, repetitions
// gather.
func followEvents(ctx context.Context, log EventLog, known uint64, send func(any) error) error {
	for {
		newer, revision := log.Events(known)
		for _, e := range newer {
			if err := send(e); err != nil {
				return err
			}
		}
		known = revision
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-log.Changed(known):
		}
	}
}
