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
	"podd/server/kube/request"
)

func (a *API) containerLogs(w http.ResponseWriter, r *http.Request) {
	p := a.findPod(w, r)
	if p == nil {
		return
	}
	req, err := ParseLogRequest(r.URL.Query())
	if err != nil {
		replyError(w, err)
		return
	}
	req.Pod, req.Container = types.NamespacedName(p.Key()), r.PathValue("container")
	if !hasContainer(p.Pod, req.Container) {
		replyError(w, newContainerNotFoundError(p, req.Container))
		return
	}
	ServeLog(w, r, a.Logs, req, replyError)
}

// ServeLog responds with a log. If an error occurs before the first byte of the response, ServeLog
// passes the error to the ErrorHandler.
func ServeLog(w http.ResponseWriter, r *http.Request, logs server.LogReader, req server.LogRequest, handleError ErrorHandler) {
	text := server.NewTextResponse(w, "text/plain")
	if req.Follow {
		text.Begin() // send the header, because a client that follows the log waits for it
		text.Flush()
	}
	err := text.CopyLogs(r.Context(), logs, req)
	if err != nil && req.Follow && text.Len() == 0 && r.Context().Err() == nil {
		_, err = io.WriteString(w, err.Error()+"\n") // the header was sent, so the error can only be in the body
	}
	switch {
	case err == nil:
		text.Begin()
		// Flush sends the last bytes before the end of the response. An API server that reads a log
		// for a WebSocket client would lose bytes that arrive together with the end.
		text.Flush()
	case text.HasBegun():
		panic(http.ErrAbortHandler) // abort the response, so that the client recognizes that the log is incomplete
	default:
		handleError(w, err)
	}
}

// An ErrorHandler responds with an error in the format of an API.
type ErrorHandler func(http.ResponseWriter, error)

// replyError responds with the error's text. The status is 500 unless err specifies one.
func replyError(w http.ResponseWriter, err error) { http.Error(w, err.Error(), server.HTTPStatus(err)) }

// ParseLogRequest parses a query in the format of v1.PodLogOptions. The parameter tail is an old
// name of tailLines. Errors are *server.Error. The status is 400 if a value cannot be parsed, and
// 422 if a value is not allowed.
func ParseLogRequest(q url.Values) (req server.LogRequest, err error) {
	req.Follow, req.Previous, req.Timestamps = request.BoolParameter(q, "follow"), request.BoolParameter(q, "previous"), request.BoolParameter(q, "timestamps")
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
			return req, newError(http.StatusBadRequest, "%s: %.40q is not a number", name, q.Get(name))
		}
		if n < 0 || n == 0 && name != "tailLines" {
			return req, newError(http.StatusUnprocessableEntity, "%s: %d is too small", name, n)
		}
		numbers[name] = n
	}
	req.Tail, req.Limit = numbers["tailLines"], numbers["limitBytes"]
	if s := q.Get("sinceTime"); s != "" {
		if req.Since, err = time.Parse(time.RFC3339, s); err != nil {
			return req, newError(http.StatusBadRequest, "sinceTime: %.40q is not a time in the format 2006-01-02T15:04:05Z", s)
		}
	}
	if n := numbers["sinceSeconds"]; n > 0 {
		if !req.Since.IsZero() {
			return req, newError(http.StatusUnprocessableEntity, "at most one of sinceTime and sinceSeconds may be given")
		}
		req.Since = time.Now().Add(-time.Duration(min(n, 1<<32)) * time.Second)
	}
	if q.Get("stream") != "" { // Kubernetes also refuses stream if the feature gate PodLogsQuerySplitStreams is off
		return req, newError(http.StatusUnprocessableEntity, "stream may not be given")
	}
	return req, nil
}

// newError returns a *server.Error with an HTTP status.
func newError(status int, format string, args ...any) error {
	return &server.Error{Status: status, Message: fmt.Sprintf(format, args...)}
}
