package server

import (
	"encoding/json"
	"net/http"
)

// AcceptedChange identifies a change of the host that a user accepts. podd has reported the change
// as a problem.
type AcceptedChange struct {
	// Change is the kind of the change, "node-name" or "empty".
	Change string `json:"what"`
	// Source is the directory or file that is empty; "" if Change is "node-name".
	Source string `json:"source,omitempty"`
}

// AcceptResponse is the response of /v1/accept.
type AcceptResponse struct {
	// Message describes the change that is now in effect.
	Message string `json:"message"`
}

// accept serves /v1/accept.
func (a *API) accept(w http.ResponseWriter, r *http.Request) {
	var change AcceptedChange
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommandBytes)).Decode(&change); err != nil {
		replyError(w, NewBodyError("reading the request to accept a change", err))
		return
	}
	message, err := a.AcceptChange(r.Context(), change)
	if err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, AcceptResponse{Message: message})
}
