package kube

import (
	"net/http"
	"strings"

	"podd/server"
	"podd/server/kube/request"
)

// proxied are the methods of what the kubelet's API has.
var proxied = []string{"create", "get", "update"}

// proxy answers as the node itself: it is this one, so nothing is sent on. Who
// may what there was asked by package auth, by the path that is left.
func (a *API) proxy(w http.ResponseWriter, r *http.Request, res *resource, i request.Info) {
	if _, err := a.find(r, res, i); err != nil {
		server.ReplyStatus(w, err)
		return
	}
	http.StripPrefix(strings.TrimSuffix(r.URL.Path, i.Proxied), a.Node).ServeHTTP(w, r)
}
