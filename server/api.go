package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// maxCommandBytes limits the body of a command, in bytes.
const maxCommandBytes = 64 << 10

// API is the API for podd's command line on the socket of ListenSocket. Every request body and
// every response is JSON, except logs. A response with a status other than 200 is an Error.
//
//	GET  /v1/version                     returns a versionInfo
//	GET  /v1/state                       returns a View
//	GET  /v1/state?watch=1&revision=N    returns a line with a Change for each change; the first
//	                                     Change is complete unless N is the newest revision
//	GET  /v1/events?revision=N           returns a v1.EventList of the events with a revision
//	                                     greater than N; N = 0 selects all events
//	GET  /v1/events?watch=1&revision=N   returns a line with a v1.Event for each of these events
//	                                     and for each later event, including repetitions
//	GET  /v1/logs?namespace=&pod=&container=&previous=&follow=&tail=&since=&timestamps=&limit=&stream=
//	                                     returns the log as text; the trailer Podd-Error contains
//	                                     an error that occurred after the first byte
//	POST /v1/credential?duration=1h      returns a Credential; the default duration is a year
//	DELETE /v1/credential                revokes all credentials issued so far and returns a
//	                                     Revocation
//	POST /v1/accept                      accepts the change in the body, an AcceptedChange, and
//	                                     returns an AcceptResponse
//	GET  /v1/orphans                     returns a list of Orphan
//	POST /v1/orphans/remove              removes the directory in the body, an OrphanTarget; the
//	                                     response comes after the removal
//	GET  /v1/images                      returns an ImageList
//	POST /v1/images/remove               removes the image in the body, an ImageTarget, and returns
//	                                     the Image; the response comes after the removal
//	POST /v1/images/prune                removes all images that are not in use, and returns
//	                                     PrunedImages
//	POST /v1/restart                     restarts the containers in the body, a ContainerTarget; the
//	                                     response comes when the request is accepted or rejected
//	POST /v1/down                        stops and removes all pods, and returns a line with a
//	                                     StopProgress whenever pods have been removed
//	POST /v1/shutdown?grace=30s          stops all pods because the node shuts down, and returns a
//	                                     line with a StopProgress whenever pods have terminated
//	POST /v1/resume                      cancels the shutdown
type API struct {
	State   Viewer    // required
	Command Commander // required
	Logs    LogReader // required
	Events  EventLog  // required
	// IssueCredential issues a credential for the kubelet's API with the given validity;
	// required.
	IssueCredential func(time.Duration) (Credential, error)
	// RevokeCredentials revokes every Credential issued so far; required.
	RevokeCredentials func() (Revocation, error)
	Orphans           Orphans // required
	Images            Images  // required
	// AcceptChange applies a change of the host that podd reported; required.
	AcceptChange func(ctx context.Context, change AcceptedChange) (message string, err error)
}

// versionInfo is the response of /v1/version.
type versionInfo struct {
	Version string `json:"version"`
	Node    string `json:"node"`
	Runtime string `json:"runtime,omitempty"`
}

// ContainerTarget names a container of a pod, or all containers of the pod.
type ContainerTarget struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`                 // full name
	Container string `json:"container,omitempty"` // "" for all containers
}

// Handler returns an http.Handler for the API. It may be called more than once.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/version", a.version)
	mux.HandleFunc("GET /v1/state", a.state)
	mux.HandleFunc("GET /v1/events", a.events)
	mux.HandleFunc("GET /v1/logs", func(w http.ResponseWriter, r *http.Request) { ServeLogs(w, r, a.Logs) })
	mux.HandleFunc("POST /v1/credential", rejectBrowsers(a.credential))
	mux.HandleFunc("DELETE /v1/credential", rejectBrowsers(a.revoke))
	mux.HandleFunc("POST /v1/accept", a.accept)
	mux.HandleFunc("GET /v1/orphans", a.listOrphans)
	mux.HandleFunc("POST /v1/orphans/remove", a.removeOrphan)
	mux.HandleFunc("GET /v1/images", a.listImages)
	mux.HandleFunc("POST /v1/images/remove", a.removeImage)
	mux.HandleFunc("POST /v1/images/prune", a.pruneImages)
	mux.HandleFunc("POST /v1/restart", a.restart)
	mux.HandleFunc("POST /v1/down", a.down)
	mux.HandleFunc("POST /v1/shutdown", a.shutdown)
	mux.HandleFunc("POST /v1/resume", a.resume)
	return mux
}

// version serves /v1/version.
func (a *API) version(w http.ResponseWriter, _ *http.Request) {
	v := a.State.View()
	Reply(w, http.StatusOK, versionInfo{Version: v.Version, Node: v.Node, Runtime: v.Runtime})
}

// restart serves /v1/restart.
func (a *API) restart(w http.ResponseWriter, r *http.Request) {
	var t ContainerTarget
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommandBytes)).Decode(&t); err != nil {
		replyError(w, NewBodyError("reading the restart request", err))
		return
	}
	key, err := t.key()
	if err == nil {
		err = a.Command.Restart(r.Context(), key, t.Container)
	}
	if err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, t)
}

// key returns the pod's key. It returns an error if a name is invalid, because the
// names are used in paths and messages.
func (t ContainerTarget) key() (types.NamespacedName, error) {
	newNameError := func(kind, name string, problems []string) (types.NamespacedName, error) {
		return types.NamespacedName{}, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("%.80q is not a valid %s name: %s", name, kind, problems[0])}
	}
	if problems := utilvalidation.IsDNS1123Label(t.Namespace); problems != nil {
		return newNameError("namespace", t.Namespace, problems)
	}
	if problems := validation.NameIsDNSSubdomain(t.Pod, false); problems != nil {
		return newNameError("pod", t.Pod, problems)
	}
	if t.Container != "" {
		if problems := utilvalidation.IsDNS1123Label(t.Container); problems != nil {
			return newNameError("container", t.Container, problems)
		}
	}
	return types.NamespacedName{Namespace: t.Namespace, Name: t.Pod}, nil
}
