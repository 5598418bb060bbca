package server

import (
	"fmt"
	"net/http"
	"time"
)

// Credential authenticates a client on another host as root for the kubelet's API.
type Credential struct {
	// Server is the URL of the API. ServerName is the name in the server's certificate, or "" if
	// the certificate contains the host of the URL.
	Server     string `json:"server"`
	ServerName string `json:"name,omitempty"`
	// CA verifies the server's certificate. Certificate and Key are the client's.
	// All are in PEM.
	CA          []byte `json:"ca"`
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"`
	// ExpiresAt is the expiry of the client's certificate.
	ExpiresAt time.Time `json:"until"`
}

// Revocation is the result of revoking all credentials.
type Revocation struct {
	// ClosedConnections is the number of connections that were closed because their
	// clients used a revoked credential.
	ClosedConnections int `json:"connections"`
}

// Minimum, maximum and default validity of a Credential.
const (
	minCredentialLife     = time.Minute
	maxCredentialLife     = 365 * 24 * time.Hour
	defaultCredentialLife = maxCredentialLife
)

// CheckCredentialLifetime returns an error if lifetime is not an allowed validity
// of a Credential.
func CheckCredentialLifetime(lifetime time.Duration) error {
	if lifetime < minCredentialLife || lifetime > maxCredentialLife {
		return fmt.Errorf("%s is not between 1m and 8760h", lifetime)
	}
	return nil
}

func (a *API) credential(w http.ResponseWriter, r *http.Request) {
	lifetime := defaultCredentialLife
	if q := r.URL.Query(); q.Has("duration") {
		var err error
		if lifetime, err = time.ParseDuration(q.Get("duration")); err == nil {
			err = CheckCredentialLifetime(lifetime)
		}
		if err != nil {
			replyError(w, &Error{Status: http.StatusBadRequest, Message: "parameter duration: " + err.Error()})
			return
		}
	}
	c, err := a.IssueCredential(lifetime)
	if err != nil {
		replyError(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	Reply(w, http.StatusOK, c)
}

func (a *API) revoke(w http.ResponseWriter, _ *http.Request) {
	revocation, err := a.RevokeCredentials()
	if err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, revocation)
}
