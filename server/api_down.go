package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// StopProgress is a line of the responses of /v1/down and /v1/shutdown.
type StopProgress struct {
	// Stopped are the pods that were removed or, during a shutdown, terminated since
	// the previous line.
	Stopped []Key `json:"stopped,omitempty"`
	// Remaining are the pods that podd still has to stop. The first line lists every pod
	// to stop.
	Remaining []Key `json:"remaining,omitempty"`
	// Problems are those problems of remaining pods that began or changed since the previous line.
	// A pod with a problem may never stop unless a user acts.
	Problems []StopProblem `json:"problems,omitempty"`
	// Done is set in the last line if the operation succeeded.
	Done bool `json:"done,omitempty"`
	// Error is set in the last line if the operation failed or was canceled.
	Error string `json:"error,omitempty"`
}

// A StopProblem contains the reason why a pod does not stop.
type StopProblem struct {
	Pod    Key    `json:"pod"`
	Reason string `json:"why"`
}

// down serves /v1/down.
func (a *API) down(w http.ResponseWriter, r *http.Request) {
	a.streamStopProgress(w, r, a.Command.Down, existingPods)
}

// shutdown serves /v1/shutdown.
func (a *API) shutdown(w http.ResponseWriter, r *http.Request) {
	var grace time.Duration
	if text := r.URL.Query().Get("grace"); text != "" {
		var err error
		if grace, err = time.ParseDuration(text); err != nil || grace <= 0 {
			replyError(w, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("grace: %.40q is not a positive duration such as 30s", text)})
			return
		}
	}
	a.streamStopProgress(w, r, func(ctx context.Context) error { return a.Command.Shutdown(ctx, grace) }, runningPods)
}

// resume serves /v1/resume.
func (a *API) resume(w http.ResponseWriter, r *http.Request) {
	if err := a.Command.Resume(r.Context()); err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, struct{}{})
}

// streamStopProgress calls stopPods and responds with lines of progress. It sends a line when the
// pods that remainingPods returns have changed, or when one of these pods has a new problem. The
// last line reports the result of stopPods.
func (a *API) streamStopProgress(w http.ResponseWriter, r *http.Request, stopPods func(context.Context) error, remainingPods func(*View) []Key) {
	ctx, cancel := context.WithCancel(r.Context())
	result := make(chan error, 1)
	view := a.State.View()
	go func() { result <- stopPods(ctx) }()

	lines := newLineWriter(w)
	previousPods, reportedProblems := remainingPods(view), map[Key]string{}
	err := lines.send(StopProgress{Remaining: previousPods})
	for err == nil {
		select {
		case err = <-result:
			lines.send(lastProgress(previousPods, remainingPods(a.State.View()), err)) // ignore errors, because the response ends in any case
			cancel()
			return
		case <-a.State.Changed(view.Revision):
			view = a.State.View()
			currentPods := remainingPods(view)
			problems := newProblems(view, currentPods, reportedProblems)
			if !slices.Equal(currentPods, previousPods) || len(problems) > 0 {
				err = lines.send(StopProgress{Stopped: difference(previousPods, currentPods), Remaining: currentPods, Problems: problems})
				previousPods = currentPods
			}
		}
	}
	cancel() // the client has disconnected; pods continue to stop
	<-result
}

// lastProgress returns the last line of a response. previousPods contains the remaining pods of the
// previous line, and currentPods contains the pods that remain now. err is the error of the
// operation.
func lastProgress(previousPods, currentPods []Key, err error) StopProgress {
	if err != nil {
		return StopProgress{Stopped: difference(previousPods, currentPods), Remaining: currentPods, Error: collapseSpace(err.Error())}
	}
	return StopProgress{Stopped: previousPods, Done: true}
}

// stoppingPhases are the phases of pods that podd stops or removes.
var stoppingPhases = []string{"stop", "wind down", "rest"}

// newProblems returns the problems of the pods in remaining. It omits problems that are already in
// reported, and adds the returned problems to reported. It also omits pods that podd has not begun
// to stop, because their problems have another cause.
func newProblems(v *View, remaining []Key, reported map[Key]string) (problems []StopProblem) {
	for _, p := range v.Pods {
		if key := p.Key(); p.NeedsUser && slices.Contains(stoppingPhases, p.Phase) && p.Why != reported[key] && slices.Contains(remaining, key) {
			reported[key] = p.Why
			problems = append(problems, StopProblem{key, p.Why})
		}
	}
	return problems
}

// runningPods returns the keys of the pods that have not terminated, sorted by namespace
// and name.
func runningPods(v *View) []Key {
	var keys []Key
	for _, p := range v.Pods {
		if p.Exists && p.Phase != "rest" {
			keys = append(keys, p.Key())
		}
	}
	return keys
}

// existingPods returns the keys of the pods that exist on the host (PodView.Exists),
// sorted by namespace and name.
func existingPods(v *View) []Key {
	var keys []Key
	for _, p := range v.Pods {
		if p.Exists {
			keys = append(keys, p.Key())
		}
	}
	return keys
}

// difference returns the elements of a that are not in b.
func difference(a, b []Key) []Key {
	return slices.DeleteFunc(slices.Clone(a), func(s Key) bool { return slices.Contains(b, s) })
}
