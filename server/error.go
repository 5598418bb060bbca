package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// Error is an answer of the API that is not the wanted one, at both ends of
// the socket.
type Error struct {
	Status  int    `json:"-"` // the HTTP status; 0 stands for 500
	Message string `json:"error"`
	// Reason tells it from others of the same status; "" for most.
	Reason Reason `json:"reason,omitempty"`
}

// Reason is why an answer is not the wanted one, for programs.
type Reason string

// NoLog is that a container has no log.
const NoLog Reason = "NoLog"

func (e *Error) Error() string { return e.Message }

// NotFound is an *Error for something that does not exist.
func NotFound(message string) *Error { return &Error{Status: http.StatusNotFound, Message: message} }

// Unread is why the body of a request could not be taken.
func Unread(doing string, err error) *Error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("%s: the body has more than %d bytes", doing, large.Limit)}
	}
	return &Error{Status: http.StatusBadRequest, Message: doing + ": " + err.Error()}
}

// fail answers with err.
func fail(w http.ResponseWriter, err error) {
	said := Error{Message: err.Error()}
	if e := (*Error)(nil); errors.As(err, &e) {
		said.Reason = e.Reason
	}
	Reply(w, StatusOf(err), said)
}

// StatusOf is the HTTP status that err chooses, 500 for one that does not.
func StatusOf(err error) int {
	if e := (*Error)(nil); errors.As(err, &e) && e.Status != 0 {
		return e.Status
	}
	return http.StatusInternalServerError
}

// Reply answers with v as JSON.
func Reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encoding the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	replyJSON(w, status, body)
}

func replyJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) // a client that went away needs no answer
}
