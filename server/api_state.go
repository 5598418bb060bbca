package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// state serves /v1/state.
func (a *API) state(w http.ResponseWriter, r *http.Request) {
	watch, err := parseBool(r.URL.Query(), "watch")
	switch {
	case err != nil:
		replyError(w, err)
	case watch:
		WatchState(w, r, a.State, func(c *Change) any { return c })
	default:
		Reply(w, http.StatusOK, a.State.View())
	}
}

// WatchState responds with a line of JSON for each change until the client disconnects. Each line
// is the result of convert for a Change. The first Change is complete (IsComplete) unless the query
// parameter revision is the revision of the newest View.
func WatchState(w http.ResponseWriter, r *http.Request, state Viewer, convert func(*Change) any) {
	var clientRevision uint64
	if s := r.URL.Query().Get("revision"); s != "" {
		var err error
		if clientRevision, err = strconv.ParseUint(s, 10, 64); err != nil {
			replyError(w, newParameterError("revision", s, "a number"))
			return
		}
	}
	lines := newLineWriter(w)
	// Ignore an error: it means that the client has disconnected.
	watchViews(r.Context(), state, clientRevision, func(c *Change) error { return lines.send(convert(c)) })
}

// watchViews calls send with the difference between the newest View and the View that was sent
// before. The first Change is complete (IsComplete) unless clientRevision is the revision of the
// newest View. Changes that occur while send runs are combined into a single Change. watchViews
// returns when ctx is done or send fails.
func watchViews(ctx context.Context, state Viewer, clientRevision uint64, send func(*Change) error) error {
	var sentView *View
	if v := state.View(); v.Revision == clientRevision {
		sentView = v
	}
	for {
		v := state.View()
		if sentView == nil || v.Revision != sentView.Revision {
			if err := send(diff(sentView, v)); err != nil {
				return err
			}
			sentView = v
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-state.Changed(v.Revision):
		}
	}
}

// lineWriter writes a response as lines of JSON and flushes each line.
type lineWriter struct {
	json  *json.Encoder
	flush func() error
}

func newLineWriter(w http.ResponseWriter) lineWriter {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	flush := http.NewResponseController(w).Flush
	flush() // send the header, so that the client is informed that the request was accepted
	return lineWriter{json.NewEncoder(w), flush}
}

func (l lineWriter) send(v any) error {
	if err := l.json.Encode(v); err != nil {
		return err
	}
	return l.flush()
}
