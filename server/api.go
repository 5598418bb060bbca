package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// maxCommand bounds the body of a command.
const maxCommand = 64 << 10

// API is what the verbs of the command line talk to, over the socket of
// ListenSocket. Every answer is JSON; one that is not 200 is an Error.
//
//	GET  /v1/version                     Version
//	GET  /v1/state                       View
//	GET  /v1/state?watch=1&revision=N    a line of Change for every change; the
//	                                     first is whole unless N is the newest
//	GET  /v1/events?revision=N           a v1.EventList of those newer than N, 0 for all
//	GET  /v1/events?watch=1&revision=N   a line of v1.Event for each of them, and for
//	                                     each to come, or to happen again
//	GET  /v1/logs?namespace=&pod=&container=&previous=&follow=&tail=&since=&timestamps=&limit=&stream=
//	                                     text; an error amid it is in the trailer Podd-Error
//	POST /v1/credential                  Credential
//	POST /v1/restart                     Target; answered when decided
//	POST /v1/down                        a line of Down for every pod gone
//	POST /v1/shutdown?grace=30s          the same, since the machine goes down
//	POST /v1/resume                      it does not after all
type API struct {
	State   Viewer    // required
	Command Commander // required
	Logs    LogReader // required
	Events  EventLog  // required
	// Credential makes one for the kubelet's API; required.
	Credential func() (Credential, error)
}

// Version is the answer of /v1/version.
type Version struct {
	Version string `json:"version"`
	Node    string `json:"node"`
	Runtime string `json:"runtime,omitempty"`
}

// Credential is by what root reaches the kubelet's API from elsewhere.
type Credential struct {
	// Server is its URL, Name what its certificate is checked for where that is
	// not the host of the URL.
	Server string `json:"server"`
	Name   string `json:"name,omitempty"`
	// CA vouches for the server; the rest is the client's. All are in PEM.
	CA          []byte `json:"ca"`
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"`
}

// Target names what a command is for.
type Target struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`                 // its full name
	Container string `json:"container,omitempty"` // "" for all
}

// Handler serves a. It can be used any number of times.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/version", a.version)
	mux.HandleFunc("GET /v1/state", a.state)
	mux.HandleFunc("GET /v1/events", a.events)
	mux.HandleFunc("GET /v1/logs", func(w http.ResponseWriter, r *http.Request) { ServeLogs(w, r, a.Logs) })
	mux.HandleFunc("POST /v1/credential", a.credential)
	mux.HandleFunc("POST /v1/restart", a.restart)
	mux.HandleFunc("POST /v1/down", a.down)
	mux.HandleFunc("POST /v1/shutdown", a.shutdown)
	mux.HandleFunc("POST /v1/resume", a.resume)
	return mux
}

func (a *API) version(w http.ResponseWriter, _ *http.Request) {
	v := a.State.View()
	Reply(w, http.StatusOK, Version{Version: v.Version, Node: v.Node, Runtime: v.Runtime})
}

func (a *API) credential(w http.ResponseWriter, _ *http.Request) {
	c, err := a.Credential()
	if err != nil {
		fail(w, err)
		return
	}
	Reply(w, http.StatusOK, c)
}

func (a *API) restart(w http.ResponseWriter, r *http.Request) {
	var t Target
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommand)).Decode(&t); err != nil {
		fail(w, Unread("reading what to restart", err))
		return
	}
	key, err := t.key()
	if err == nil {
		err = a.Command.Restart(r.Context(), key, t.Container)
	}
	if err != nil {
		fail(w, err)
		return
	}
	Reply(w, http.StatusOK, t)
}

// key checks the names, which end up in paths and messages.
func (t Target) key() (types.NamespacedName, error) {
	bad := func(what, name string, why []string) (types.NamespacedName, error) {
		return types.NamespacedName{}, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("%.80q is no name for a %s: %s", name, what, why[0])}
	}
	if why := utilvalidation.IsDNS1123Label(t.Namespace); why != nil {
		return bad("namespace", t.Namespace, why)
	}
	if why := validation.NameIsDNSSubdomain(t.Pod, false); why != nil {
		return bad("pod", t.Pod, why)
	}
	if t.Container != "" {
		if why := utilvalidation.IsDNS1123Label(t.Container); why != nil {
			return bad("container", t.Container, why)
		}
	}
	return types.NamespacedName{Namespace: t.Namespace, Name: t.Pod}, nil
}
