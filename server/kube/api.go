// Package kube serves the Kubernetes API as kubectl and client-go know it, over
// the pods that podd runs and what belongs to them:
//
//	/api /apis /version /openapi             what there is: discovery.go, version.go
//	/api/v1/{pods,nodes,namespaces,…}        get, list, watch: resource.go has them all
//	/api/v1/namespaces/…/pods/…/{log,exec,…} into a pod: pod.go
//	/api/v1/nodes/…/proxy/…                  the kubelet's own API: proxy.go
//	/apis/authorization.k8s.io/…             may I, who am I: review.go
//	/apis/metrics.k8s.io/v1beta1             usage, where something measures it
//
// A store remembers, for every resource that was ever asked for, the objects and
// the newest changes. Nothing runs for it: who asks, or wakes because the View
// changed, brings it up to date first (store.go). So watchers share one ring of
// changes and each object's one encoding, and keep nothing but how far they read;
// one too slow for the ring is ended with 410 Gone and lists again.
//
// It authorizes nobody, see package auth; what it answers to reviews is what the
// Authorizer says of the context's user.
//
// Objects come from manifests, so to write is to edit those. With Manifests the
// API has a directory of its own for that, and what is created here is changed and
// deleted here, by an apiserver's rules:
//
//	body ── decode ── validate ──▶ file ── source ── router ──▶ View ──▶ answer
//
// One write is made at a time, and it is answered when the View shows it: who was
// answered reads their own write, in a get and in a watch, and no update is lost.
// A file of another source is never touched: such a change is refused with the
// file's name, as all are without Manifests. What is in no manifest are the
// ephemeral containers of a pod that runs: those are taken (ephemeral.go).
//
// Who set which field is kept as an apiserver does, in metadata.managedFields of
// what is written: a server-side apply conflicts with what others set, and removes
// what its manager leaves out (manage.go, apply.go and package managed). Nothing is
// tracked of files that are not this API's, nor of ephemeral containers.
package kube

import (
	"net/http"
	"time"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube/managed"
	"podd/server/kube/openapi"
	"podd/server/kube/request"
	"podd/server/kubelet"
)

// API is the Kubernetes API of a node. All fields are required but those that
// say otherwise; none may change once it serves.
type API struct {
	State      server.Viewer
	Logs       server.LogReader
	Runtime    kubelet.Runtime
	Authorizer auth.Authorizer // asked by reviews alone
	// Node is what nodes/proxy leads to, the kubelet's API.
	Node http.Handler
	// Events are those to show; nil: there are none.
	Events Events
	// Usage measures pods and the node; nil: metrics.k8s.io is not served.
	Usage Usage
	// Debugger takes ephemeral containers; nil: they are read only.
	Debugger Debugger

	// Debugging serves what goes into a pod or shows its output: exec, attach,
	// portforward and log, and takes ephemeral containers; others are answered 405.
	Debugging bool

	// Now is the time that tables tell ages of; nil: time.Now.
	Now func() time.Time

	// Manifests is where objects are written that are created here; nil: every
	// change is refused.
	Manifests Manifests
	// OfCluster says that the node is one of a cluster, where podd takes no
	// Manifests.
	OfCluster bool

	writing   chan struct{} // whoever puts one in writes
	resources []*resource
	store     *store
	openAPI   http.Handler
	fields    *managed.Fields
	debugging chan struct{} // held by who changes ephemeral containers
}

// Handler serves a. It is to be called once.
func (a *API) Handler() http.Handler {
	if a.Events == nil {
		a.Events = noEvents{}
	}
	a.debugging, a.writing = make(chan struct{}, 1), make(chan struct{}, 1)
	a.resources = a.served()
	a.store = newStore(a.State, a.Events)
	a.openAPI = openapi.New(GitVersion, described(a.resources))
	a.fields = managed.New(a.writable)
	return http.HandlerFunc(a.serve)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	i := request.Of(r)
	if i.Resource != "" {
		a.serveResource(w, r, i)
		return
	}
	if i.Path == "/openapi" || under(i.Path, "/openapi") {
		a.openAPI.ServeHTTP(w, r)
		return
	}
	a.discover(w, r, i.Path)
}

// serveResource: what is refused is refused by the most that is known of it.
func (a *API) serveResource(w http.ResponseWriter, r *http.Request, i request.Info) {
	res := a.resource(i)
	switch {
	case res == nil || i.Rest != "" && i.Proxied == "" || i.Subresource != "" && !res.has(i.Subresource):
		server.ReplyStatus(w, errNoPath)
	case !a.Debugging && (i.Connects() || i.Subresource == "log" || i.Subresource == ephemeral && i.Verb != "get"):
		server.ReplyStatus(w, errNoDebugging)
	case i.Proxied != "":
		a.proxy(w, r, res, i)
	case res.review != nil:
		a.review(w, r, res, i)
	case i.Verb == "create" && i.Connects():
		a.connect(w, r, i)
	case a.Debugger != nil && i.Subresource == ephemeral && (i.Verb == "update" || i.Verb == "patch"):
		a.addEphemeral(w, r, res, i)
	case i.Verb == "get" && i.Subresource == "log":
		a.log(w, r, i)
	case i.Verb == "get":
		a.get(w, r, res, i)
	case i.Verb == "list":
		a.list(w, r, res, i)
	case i.Verb == "watch" && res.watched():
		a.watch(w, r, res, i)
	case a.writes(res, i):
		a.write(w, r, res, i)
	default:
		server.ReplyStatus(w, a.refusal(res, i))
	}
}

// resource is the one a request is for; nil when it is not served so.
func (a *API) resource(i request.Info) *resource {
	for _, res := range a.resources {
		if res.group != i.Group || res.version != i.Version || res.name != i.Resource {
			continue
		}
		switch {
		case res.name == "namespaces": // in itself
			return res
		case !res.namespaced && i.Namespace != "", res.namespaced && i.Namespace == "" && i.Verb == "get":
			return nil
		}
		return res
	}
	return nil
}
