package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// StopProgress is a line of the responses of /v1/down and /v1/shutdown. Left of the first
// line has all pods to stop. The last line has Done or Error.
type StopProgress struct {
	// Gone has the pods that were removed since the previous line or, for a
	// shutdown, that have terminated since then.
	Gone []Key `json:"gone,omitempty"`
	Left []Key `json:"left,omitempty"`
	Done bool  `json:"done,omitempty"`
	// Error is set if the operation failed or was canceled.
	Error string `json:"error,omitempty"`
}

func (a *API) down(w http.ResponseWriter, r *http.Request) {
	a.streamDown(w, r, a.Command.Down, existingPods)
}

func (a *API) shutdown(w http.ResponseWriter, r *http.Request) {
	var grace time.Duration
	if text := r.URL.Query().Get("grace"); text != "" {
		var err error
		if grace, err = time.ParseDuration(text); err != nil || grace <= 0 {
			fail(w, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("grace: %.40q is not a positive duration such as 30s", text)})
			return
		}
	}
	a.streamDown(w, r, func(ctx context.Context) error { return a.Command.Shutdown(ctx, grace) }, runningPods)
}

func (a *API) resume(w http.ResponseWriter, r *http.Request) {
	if err := a.Command.Resume(r.Context()); err != nil {
		fail(w, err)
		return
	}
	Reply(w, http.StatusOK, struct{}{})
}

// streamDown writes a line whenever pods have disappeared from remaining while stop
// runs.
func (a *API) streamDown(w http.ResponseWriter, r *http.Request, stop func(context.Context) error, remaining func(*View) []Key) {
	ctx, cancel := context.WithCancel(r.Context())
	result := make(chan error, 1)
	view := a.State.View()
	go func() { result <- stop(ctx) }()

	out := newLines(w)
	left := remaining(view)
	err := out.send(StopProgress{Left: left})
	for err == nil {
		select {
		case err = <-result:
			out.send(downEnd(left, remaining(a.State.View()), err)) // the last line in any case
			cancel()
			return
		case <-a.State.Changed(view.Revision):
			view = a.State.View()
			if now := remaining(view); !slices.Equal(now, left) {
				err = out.send(StopProgress{Gone: without(left, now), Left: now})
				left = now
			}
		}
	}
	cancel() // the client has disconnected; pods continue to stop
	<-result
}

// downEnd returns the last line, given the error of the operation.
func downEnd(before, now []Key, err error) StopProgress {
	if err != nil {
		return StopProgress{Gone: without(before, now), Left: now, Error: oneLine(err.Error())}
	}
	return StopProgress{Gone: before, Done: true}
}

// runningPods returns the keys of the pods that have not terminated, in order.
func runningPods(v *View) []Key {
	var keys []Key
	for _, p := range v.Pods {
		if p.Exists && p.Phase != "rest" {
			keys = append(keys, p.Key())
		}
	}
	return keys
}

// existingPods returns the keys of the pods that have anything on the host, in
// order.
func existingPods(v *View) []Key {
	var keys []Key
	for _, p := range v.Pods {
		if p.Exists {
			keys = append(keys, p.Key())
		}
	}
	return keys
}

// without returns the elements of a that are not in b.
func without(a, b []Key) []Key {
	return slices.DeleteFunc(slices.Clone(a), func(s Key) bool { return slices.Contains(b, s) })
}
