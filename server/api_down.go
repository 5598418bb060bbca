package server

import (
	"context"
	"net/http"
	"slices"
)

// Down is a line of the answer of /v1/down. The first names in Left all pods
// that are to end, the last is Done or has an Error.
type Down struct {
	// Gone are the pods of which nothing is left since the line before.
	Gone []Key `json:"gone,omitempty"`
	Left []Key `json:"left,omitempty"`
	Done bool  `json:"done,omitempty"`
	// Error is why it ended before it was done.
	Error string `json:"error,omitempty"`
}

func (a *API) down(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	result := make(chan error, 1)
	seen := a.State.View()
	go func() { result <- a.Command.Down(ctx) }()

	out := newLines(w)
	left := existing(seen)
	err := out.send(Down{Left: left})
	for err == nil {
		select {
		case err = <-result:
			out.send(downEnd(left, existing(a.State.View()), err)) // the last word either way
			cancel()
			return
		case <-a.State.Changed(seen.Revision):
			seen = a.State.View()
			if now := existing(seen); !slices.Equal(now, left) {
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
