package page

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// An eventList is the response of /page/events: the events with a revision greater than the
// requested one, in the order in which they occurred.
type eventList struct {
	Revision uint64     `json:"revision"`
	Events   []eventRow `json:"events"`
}

// An eventRow is an event in the page's list, with the data of its last occurrence.
type eventRow struct {
	Name    string     `json:"name"` // the same for all repetitions of an event
	Pod     server.Key `json:"pod"`  // empty if the event is about the node
	Type    string     `json:"type"` // Normal or Warning
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	Count   int32      `json:"count"`
	Last    time.Time  `json:"last"`
}

func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	var afterRevision uint64
	if s := r.URL.Query().Get("after"); s != "" {
		var err error
		if afterRevision, err = strconv.ParseUint(s, 10, 64); err != nil {
			http.Error(w, fmt.Sprintf("parameter after: %.40q is not an event revision", s), http.StatusBadRequest)
			return
		}
	}
	newer, revision := p.Events.Events(afterRevision)
	list := eventList{revision, make([]eventRow, 0, len(newer))}
	for _, e := range newer {
		list.Events = append(list.Events, newEventRow(e))
	}
	server.Reply(w, http.StatusOK, list)
}

func newEventRow(e *v1.Event) eventRow {
	row := eventRow{
		Name: e.Namespace + "/" + e.Name, Type: e.Type, Reason: e.Reason, Message: e.Message,
		Count: max(e.Count, 1), Last: e.LastTimestamp.Time,
	}
	if e.InvolvedObject.Kind == "Pod" {
		row.Pod = server.Key{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
	}
	return row
}
