// Package kube serves the Kubernetes API to kubectl and client-go, for the pods that podd runs and
// the objects that belong to them:
//
//	/api /apis /version /openapi             discovery: discovery.go, version.go
//	/api/v1/{pods,nodes,namespaces,…}        get, list, watch: packages resource and read
//	/api/v1/namespaces/…/pods/…/{log,exec,…} connections to a pod: pod.go
//	/api/v1/nodes/…/proxy/…                  the kubelet's API: proxy.go
//	/apis/authorization.k8s.io/…             access reviews: review.go
//	/apis/metrics.k8s.io/v1beta1             resource usage, if it is measured
//
// Package auth authorizes the requests. This package authorizes only the reading of Secrets: if
// MayReadSecret returns false for a user, it removes the data of Secrets from the response. Access
// reviews return the decision of the Authorizer about the user in the context.
//
// The objects come from manifests. A request that writes an object edits its manifest. Package
// write edits manifests and rejects requests that are not supported.
package kube

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube/managed"
	"podd/server/kube/openapi"
	"podd/server/kube/read"
	"podd/server/kube/request"
	"podd/server/kube/resource"
	"podd/server/kube/write"
	"podd/server/kubelet"
)

// API is the Kubernetes API of a node. All fields are required unless their comment
// states otherwise. They must not change after Handler is called.
type API struct {
	// KubernetesVersion is the version of Kubernetes whose API is served, such as "v1.37.2".
	KubernetesVersion string

	State      server.Viewer
	Logs       server.LogReader
	Runtime    kubelet.Runtime
	Authorizer auth.Authorizer // used only by access reviews
	// NodeProxy is the kubelet's API, which nodes/proxy serves.
	NodeProxy http.Handler
	// Events provides the events; nil if there are none.
	Events read.EventSource
	// Meter measures pods and the node. If it is nil, metrics.k8s.io is not served.
	Meter read.Meter
	// Debugger adds ephemeral containers. If it is nil, ephemeral containers are read-only.
	Debugger write.Debugger

	// DebuggingEnabled enables ephemeral containers and the subresources that connect to a pod or
	// return its output: exec, attach, portforward and log. If it is not set, such requests are
	// rejected with 405.
	DebuggingEnabled bool

	// Now returns the time from which ages in tables are computed; nil means time.Now.
	Now func() time.Time

	// Manifests stores the objects that are created through the API. If it is nil,
	// all writes are rejected.
	Manifests write.ManifestStore
	// InCluster is set if the node belongs to a cluster. If it is set, the errors for rejected
	// writes do not recommend the flag --api-manifest-dir.
	InCluster bool
	// MayReadSecret reports whether a user may read the data of a Secret or, if the name is empty, of
	// all Secrets of a namespace. If it returns false, or if a proxy forwarded the request, the
	// response contains the objects without data. If MayReadSecret is nil, permission to read the
	// objects is sufficient to read the data.
	MayReadSecret func(ctx context.Context, u auth.User, namespace, name string) bool

	resources    []*resource.Definition
	readHandler  *read.Handler
	writeHandler *write.Handler
	openAPI      http.Handler
}

// Handler returns an http.Handler for the API. It must be called only once.
func (a *API) Handler() http.Handler {
	if a.Now == nil {
		a.Now = time.Now
	}
	a.resources = resource.Definitions(resource.Options{ServesMetrics: a.Meter != nil, IsWritable: a.Manifests != nil})
	a.readHandler = read.New(read.Options{State: a.State, Events: a.Events, Meter: a.Meter, MayReadSecret: a.MayReadSecret, Now: a.Now})
	a.openAPI = openapi.New(a.KubernetesVersion+VersionSuffix, toOpenAPI(a.resources))
	a.writeHandler = write.New(write.Options{
		State: a.State, Objects: a.readHandler, Fields: managed.New(a.writableResources), Manifests: a.Manifests, InCluster: a.InCluster, Debugger: a.Debugger, Now: a.Now,
	})
	return http.HandlerFunc(a.serve)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	i := request.Parse(r)
	if i.Resource != "" {
		a.serveResource(w, r, i)
		return
	}
	if i.Path == "/openapi" || isBelow(i.Path, "/openapi") {
		a.openAPI.ServeHTTP(w, r)
		return
	}
	a.discover(w, r, i.Path)
}

// serveResource serves a request for a resource. The cases of its switch are in a fixed order, so
// that a request with several errors gets the most specific error.
func (a *API) serveResource(w http.ResponseWriter, r *http.Request, i request.Info) {
	res := a.findResource(i)
	switch {
	case res == nil || i.RemainingPath != "" && i.ProxiedPath == "" || i.Subresource != "" && !res.HasSubresource(i.Subresource):
		server.ReplyStatus(w, errUnknownPath)
	case !a.DebuggingEnabled && (i.OpensStream() || i.Subresource == "log" || i.Subresource == resource.EphemeralContainers && i.Verb != "get"):
		server.ReplyStatus(w, errDebuggingDisabled)
	case i.ProxiedPath != "":
		a.proxy(w, r, res, i)
	case reviewers[res.Name] != nil:
		a.review(w, r, res, i)
	case i.Verb == "create" && i.OpensStream():
		a.connect(w, r, i)
	case i.Verb == "get" && i.Subresource == "log":
		a.serveLog(w, r, i)
	case i.Verb == "get", i.Verb == "list", i.Verb == "watch" && res.IsWatchable():
		a.readHandler.Serve(w, r, res, i)
	default:
		a.writeHandler.Serve(w, r, res, i)
	}
}

// findResource returns the resource of a request, or nil if it is not served.
func (a *API) findResource(i request.Info) *resource.Definition {
	for _, res := range a.resources {
		if res.Group != i.Group || res.Version != i.Version || res.Name != i.Resource {
			continue
		}
		switch {
		case res.Name == "namespaces": // if the request is for a Namespace, request.Parse sets i.Namespace to its name
			return res
		case !res.Namespaced && i.Namespace != "", res.Namespaced && i.Namespace == "" && i.Verb == "get":
			return nil
		}
		return res
	}
	return nil
}

// errUnknownPath is the response for unknown paths.
var errUnknownPath = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
	Message: "the server could not find the requested resource",
}}
