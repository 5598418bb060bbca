package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

func (a *API) state(w http.ResponseWriter, r *http.Request) {
	watch, err := boolean(r.URL.Query(), "watch")
	switch {
	case err != nil:
		fail(w, err)
	case watch:
		WatchState(w, r, a.State, func(c *Change) any { return c })
	default:
		Reply(w, http.StatusOK, a.State.View())
	}
}

// WatchState answers with a line of JSON for every change, as it is shown here,
// until the client leaves. The first is whole unless the parameter revision is
// that of the newest View.
func WatchState(w http.ResponseWriter, r *http.Request, state Viewer, shown func(*Change) any) {
	var known uint64
	if s := r.URL.Query().Get("revision"); s != "" {
		var err error
		if known, err = strconv.ParseUint(s, 10, 64); err != nil {
			fail(w, badParameter("revision", s, "a number"))
			return
		}
	}
	lines := newLines(w)
	watchViews(r.Context(), state, known, func(c *Change) error { return lines.send(shown(c)) }) // its error is the client's leaving
}

// watchViews calls send with what makes the newest View of the one before,
// beginning from nothing or, when the newest has the revision known, from that
// one. While send is busy, changes gather and make one Change. It returns when
// ctx is done or with the error of send.
func watchViews(ctx context.Context, state Viewer, known uint64, send func(*Change) error) error {
	var sent *View
	if v := state.View(); v.Revision == known {
		sent = v
	}
	for {
		v := state.View()
		if sent == nil || v.Revision != sent.Revision {
			if err := send(Between(sent, v)); err != nil {
				return err
			}
			sent = v
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-state.Changed(v.Revision):
		}
	}
}

// lines answers with a line of JSON at a time, each sent at once.
type lines struct {
	json  *json.Encoder
	flush func() error
}

func newLines(w http.ResponseWriter) lines {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	flush := http.NewResponseController(w).Flush
	flush() // the header, so that the client knows that it was heard
	return lines{json.NewEncoder(w), flush}
}

func (l lines) send(v any) error {
	if err := l.json.Encode(v); err != nil {
		return err
	}
	return l.flush()
}
