package server

import (
	"encoding/json"
	"net/http"
)

// Acceptance identifies a change of the host that podd reported as a problem and
// that a user accepts.
type Acceptance struct {
	// Change is the kind of the change, "node-name" or "empty".
	Change string `json:"what"`
	// Source is the directory or file that is empty.
	Source string `json:"source,omitempty"`
}

// Accepted is the response of /v1/accept.
type Accepted struct {
	// Message describes the change that is now in effect.
	Message string `json:"message"`
}

// accept serves /v1/accept.
func (a *API) accept(w http.ResponseWriter, r *http.Request) {
	var change Acceptance
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommand)).Decode(&change); err != nil {
		replyError(w, BodyError("reading the request to accept a change", err))
		return
	}
	message, err := a.Accept(r.Context(), change)
	if err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, Accepted{Message: message})
}
