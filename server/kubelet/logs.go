package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

func (a *API) containerLogs(w http.ResponseWriter, r *http.Request) {
	p := a.podOf(w, r)
	if p == nil {
		return
	}
	req, err := LogRequest(r.URL.Query())
	if err != nil {
		fail(w, err)
		return
	}
	req.Pod, req.Container = types.NamespacedName(p.Key()), r.PathValue("container")
	if !has(p.Pod, req.Container) {
		fail(w, noContainer(p, req.Container))
		return
	}
	ServeLog(w, r, a.Logs, req, fail)
}

// ServeLog answers with a log; fail does with an error, where that can still be
// the answer.
func ServeLog(w http.ResponseWriter, r *http.Request, logs server.LogReader, req server.LogRequest, fail Fail) {
	text := server.NewText(w, "text/plain")
	if req.Follow {
		text.Begin() // so that who follows knows that it was heard
		text.Flush()
	}
	err := text.CopyLogs(r.Context(), logs, req)
	if err != nil && req.Follow && text.Len() == 0 && r.Context().Err() == nil {
		_, err = io.WriteString(w, err.Error()+"\n") // all that can still be said
	}
	switch {
	case err == nil:
		text.Begin()
		// An API server asked for a log over a WebSocket loses what comes with the end
		// of the answer.
		text.Flush()
	case text.Begun():
		panic(http.ErrAbortHandler) // a text cut short must not look whole
	default:
		fail(w, err)
	}
}

// Fail answers with an error in the way of an API.
type Fail func(http.ResponseWriter, error)

// fail answers with err: 500, unless it chooses a status.
func fail(w http.ResponseWriter, err error) { http.Error(w, err.Error(), server.StatusOf(err)) }

// LogRequest reads a query, which is a v1.PodLogOptions; tail is an old name of
// tailLines. Its errors are *server.Error: 400 for what does not parse, 422 for
// what may not be.
func LogRequest(q url.Values) (req server.LogRequest, err error) {
	req.Follow, req.Previous, req.Timestamps = boolean(q, "follow"), boolean(q, "previous"), boolean(q, "timestamps")
	if t := q.Get("tail"); t != "" {
		q.Set("tailLines", t)
		if t == "all" {
			q.Del("tailLines")
		}
	}
	numbers := map[string]int64{"tailLines": -1, "limitBytes": 0, "sinceSeconds": 0}
	for name := range numbers {
		if q.Get(name) == "" {
			continue
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil {
			return req, bad(http.StatusBadRequest, "%s: %.40q is no number", name, q.Get(name))
		}
		if n < 0 || n == 0 && name != "tailLines" {
			return req, bad(http.StatusUnprocessableEntity, "%s: %d is too small", name, n)
		}
		numbers[name] = n
	}
	req.Tail, req.Limit = numbers["tailLines"], numbers["limitBytes"]
	if s := q.Get("sinceTime"); s != "" {
		if req.Since, err = time.Parse(time.RFC3339, s); err != nil {
			return req, bad(http.StatusBadRequest, "sinceTime: %.40q is no time as 2006-01-02T15:04:05Z", s)
		}
	}
	if n := numbers["sinceSeconds"]; n > 0 {
		if !req.Since.IsZero() {
			return req, bad(http.StatusUnprocessableEntity, "at most one of sinceTime and sinceSeconds may be given")
		}
		req.Since = time.Now().Add(-time.Duration(min(n, 1<<32)) * time.Second)
	}
	if q.Get("stream") != "" { // as in Kubernetes with the gate PodLogsQuerySplitStreams off
		return req, bad(http.StatusUnprocessableEntity, "stream may not be given")
	}
	return req, nil
}

func bad(status int, format string, args ...any) error {
	return &server.Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// boolean: as in Kubernetes any other word is true.
func boolean(q url.Values, name string) bool {
	s := q.Get(name)
	return q.Has(name) && s != "false" && s != "0"
}
