package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Down is a line of the answer of /v1/down and of /v1/shutdown. The first names in Left all pods
// that are to end, the last is Done or has an Error.
type Down struct {
	// Gone are the pods of which nothing is left since the line before, or for a
	// shutdown nothing that runs.
	Gone []Key `json:"gone,omitempty"`
	Left []Key `json:"left,omitempty"`
	Done bool  `json:"done,omitempty"`
	// Error is why it ended before it was done.
	Error string `json:"error,omitempty"`
}

func (a *API) down(w http.ResponseWriter, r *http.Request) {
	a.tellEnds(w, r, a.Command.Down, existing)
}

func (a *API) shutdown(w http.ResponseWriter, r *http.Request) {
	var grace time.Duration
	if text := r.URL.Query().Get("grace"); text != "" {
		var err error
		if grace, err = time.ParseDuration(text); err != nil || grace <= 0 {
			fail(w, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("grace: %.40q is no duration above 0, such as 30s", text)})
			return
		}
	}
	a.tellEnds(w, r, func(ctx context.Context) error { return a.Command.Shutdown(ctx, grace) }, living)
}

func (a *API) resume(w http.ResponseWriter, r *http.Request) {
	if err := a.Command.Resume(r.Context()); err != nil {
		fail(w, err)
		return
	}
	Reply(w, http.StatusOK, struct{}{})
}

// tellEnds writes a line for every pod that what end does leaves none of any more.
func (a *API) tellEnds(w http.ResponseWriter, r *http.Request, end func(context.Context) error, of func(*View) []Key) {
	ctx, cancel := context.WithCancel(r.Context())
	result := make(chan error, 1)
	seen := a.State.View()
	go func() { result <- end(ctx) }()

	out := newLines(w)
	left := of(seen)
	err := out.send(Down{Left: left})
	for err == nil {
		select {
		case err = <-result:
			out.send(downEnd(left, of(a.State.View()), err)) // the last word either way
			cancel()
			return
		case <-a.State.Changed(seen.Revision):
			seen = a.State.View()
			if now := of(seen); !slices.Equal(now, left) {
				err = out.send(Down{Gone: without(left, now), Left: now})
				left = now
			}
		}
	}
	cancel() // nobody listens any more; the stopping goes on
	<-result
}

// downEnd is the last line, after Down returned err.
func downEnd(before, now []Key, err error) Down {
	if err != nil {
		return Down{Gone: without(before, now), Left: now, Error: oneLine(err.Error())}
	}
	return Down{Gone: before, Done: true}
}

// living are the pods that have not come to an end, in order.
func living(v *View) []Key {
	var keys []Key
	for _, p := range v.Pods {
		if p.Exists && p.Phase != "rest" {
			keys = append(keys, p.Key())
		}
	}
	return keys
}

// existing are the pods of which something is on the machine, in order.
func existing(v *View) []Key {
	var keys []Key
	for _, p := range v.Pods {
		if p.Exists {
			keys = append(keys, p.Key())
		}
	}
	return keys
}

// without are the elements of a that b has not.
func without(a, b []Key) []Key {
	return slices.DeleteFunc(slices.Clone(a), func(s Key) bool { return slices.Contains(b, s) })
}
