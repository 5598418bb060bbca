package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ErrorTrailer is the name of the trailer with the error that ended a text
// response.
const ErrorTrailer = "Podd-Error"

// ServeLogs responds with the log that the query selects; see API.
func ServeLogs(w http.ResponseWriter, r *http.Request, logs LogReader) {
	req, err := parseLogRequest(r.URL.Query())
	if err != nil {
		replyError(w, err)
		return
	}
	text := NewTextResponse(w, "text/plain; charset=utf-8")
	err = text.CopyLogs(r.Context(), logs, req)
	switch {
	case err == nil:
		text.Begin()
	case text.HasBegun():
		text.Flush() // Flush makes the response chunked; other responses cannot have a trailer
		w.Header().Set(http.TrailerPrefix+ErrorTrailer, collapseSpace(err.Error()))
	default:
		replyError(w, err)
	}
}

// parseLogRequest parses the query of /v1/logs.
func parseLogRequest(q url.Values) (req LogRequest, err error) {
	if req.Container = q.Get("container"); req.Container == "" {
		return req, &Error{Status: http.StatusBadRequest, Message: "parameter container is missing"}
	}
	req.Pod, err = ContainerTarget{q.Get("namespace"), q.Get("pod"), req.Container}.key()
	if err != nil {
		return req, err
	}
	for name, flag := range map[string]*bool{"previous": &req.Previous, "follow": &req.Follow, "timestamps": &req.Timestamps} {
		if *flag, err = parseBool(q, name); err != nil {
			return req, err
		}
	}
	req.Tail = -1
	for name, number := range map[string]*int64{"tail": &req.Tail, "limit": &req.Limit} {
		if s := q.Get(name); s != "" {
			if *number, err = strconv.ParseInt(s, 10, 64); err != nil {
				return req, newParameterError(name, s, "a number")
			}
		}
	}
	switch req.Stream = LogStream(q.Get("stream")); req.Stream {
	case "", Stdout, Stderr:
	default:
		return req, newParameterError("stream", string(req.Stream), "stdout or stderr")
	}
	if s := q.Get("since"); s != "" {
		if req.Since, err = time.Parse(time.RFC3339, s); err != nil {
			return req, newParameterError("since", s, "a time such as 2006-01-02T15:04:05Z")
		}
	}
	return req, nil
}

// parseBool returns the value of a boolean parameter, or false if the parameter is missing.
func parseBool(q url.Values, name string) (bool, error) {
	s := q.Get(name)
	if s == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, newParameterError(name, s, "true or false")
	}
	return b, nil
}

// newParameterError returns the error for a parameter with an invalid value. expected describes
// the valid values.
func newParameterError(name, value, expected string) error {
	return &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("parameter %s: %.80q is not %s", name, value, expected)}
}
