package main

import (
	"net/http"

	"podd/manifest"
	"podd/server/auth"
	"podd/server/kube"
)

// kubeAPI is the Kubernetes API, for whoever is let in; who may what is said by
// the authorizer.
func (d *podd) kubeAPI(who auth.Authorizer, usage kube.Usage, node http.Handler) http.Handler {
	if d.cfg.Cluster.Kubeconfig != "" {
		who = auth.Proxied{Authorizer: who, Node: d.cfg.NodeName}
	}
	a := &kube.API{
		State: d.view.latest, Logs: d.logReader(), Runtime: inContainers{d.client}, Authorizer: who, Node: node,
		Events: d.events, Usage: usage, Debugger: d.router, Debugging: d.cfg.API.Debugging,
		OfCluster: d.cfg.Cluster.Kubeconfig != "",
	}
	if d.written != nil {
		a.Manifests = apiManifests{d.written, d.router, manifest.Options{
			Node: d.cfg.NodeName, Labels: nodeLabels(d.cfg), RestartRules: d.cfg.RestartRules, Written: true,
		}}
	}
	return a.Handler()
}

// both is the kubelet's API and the Kubernetes API, whose paths differ.
func both(kubelet, kube http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/api", "/api/", "/apis", "/apis/", "/openapi/", "/version", "/version/"} {
		mux.Handle(path, kube)
	}
	mux.Handle("/", kubelet)
	return mux
}
