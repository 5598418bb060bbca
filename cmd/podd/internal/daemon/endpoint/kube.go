package endpoint

import (
	"context"
	"net/http"

	"podd/manifest"
	"podd/server/auth"
	"podd/server/kube"
)

// kubeAPIHandler returns the handler of the Kubernetes API. It expects authenticated clients;
// authorizer decides which requests they may send. The handler node serves requests for the proxy
// path of a node.
func (h *handlers) kubeAPIHandler(authorizer auth.Authorizer, node http.Handler) http.Handler {
	var mayReadSecret func(context.Context, auth.User, string, string) bool
	if h.Cluster != nil {
		proxyAuthorizer := auth.ProxyAuthorizer{Authorizer: authorizer, Node: h.Node}
		authorizer, mayReadSecret = proxyAuthorizer, proxyAuthorizer.MayReadSecret
	}
	a := &kube.API{
		KubernetesVersion: manifest.KubernetesVersion,
		State:             h.State, Logs: h.Logs, Runtime: streamRuntime{h.Runtime}, Authorizer: authorizer, NodeProxy: node,
		Events: h.Events, Meter: h.Meter, Debugger: h.Router, DebuggingEnabled: h.Server.API.EnableDebugging,
		InCluster: h.Cluster != nil, MayReadSecret: mayReadSecret, Manifests: h.Manifests,
	}
	return a.Handler()
}

// mergeAPIs returns a handler that serves the kubelet API and the Kubernetes API. Their paths do
// not overlap.
func mergeAPIs(kubelet, kube http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/api", "/api/", "/apis", "/apis/", "/openapi/", "/version", "/version/"} {
		mux.Handle(path, kube)
	}
	mux.Handle("/", kubelet)
	return mux
}
