package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// Error is a response of the API with a status other than 200. The body of the response is an Error
// as JSON, which the client decodes.
type Error struct {
	Status  int    `json:"-"` // HTTP status; 0 means 500
	Message string `json:"error"`
	// Reason distinguishes errors with the same status; "" for most.
	Reason Reason `json:"reason,omitempty"`
}

// Reason is the cause of an error in a form for programs.
type Reason string

// ReasonNoLog means that a container has no log.
const ReasonNoLog Reason = "NoLog"

func (e *Error) Error() string { return e.Message }

// NewNotFoundError returns an *Error for an object that does not exist.
func NewNotFoundError(message string) *Error {
	return &Error{Status: http.StatusNotFound, Message: message}
}

// NewBodyError returns the *Error for a failure to read the body of a request. The parameter
// operation describes the operation that failed.
func NewBodyError(operation string, err error) *Error {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("%s: the request body has more than %d bytes", operation, tooLarge.Limit)}
	}
	return &Error{Status: http.StatusBadRequest, Message: operation + ": " + err.Error()}
}

// replyError responds with err.
func replyError(w http.ResponseWriter, err error) {
	response := Error{Message: err.Error()}
	if e := (*Error)(nil); errors.As(err, &e) {
		response.Reason = e.Reason
	}
	Reply(w, HTTPStatus(err), response)
}

// HTTPStatus returns the HTTP status that err specifies, or 500.
func HTTPStatus(err error) int {
	if e := (*Error)(nil); errors.As(err, &e) && e.Status != 0 {
		return e.Status
	}
	return http.StatusInternalServerError
}

// Reply responds with v as JSON.
func Reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encoding the response: "+err.Error(), http.StatusInternalServerError)
		return
	}
	ReplyJSON(w, status, body)
}

// ReplyJSON responds with an encoded JSON document.
func ReplyJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) // ignore an error: it means that the client has disconnected
}
