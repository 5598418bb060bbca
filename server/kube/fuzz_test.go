package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"podd/server/auth"
	"podd/server/kube/kubetest"
)

// FuzzServe checks that every request gets a response, and that no response contains a Secret
// unless reading Secrets was authorized.
func FuzzServe(f *testing.F) {
	f.Add("GET", "/api/v1/namespaces/shop/secrets/key", "", "application/json")
	f.Add("GET", "/api/v1/pods", "watch=1&resourceVersion=0&sendInitialEvents=true&allowWatchBookmarks=1", "application/json;as=Table;v=v1;g=meta.k8s.io")
	f.Add("POST", "/api/v1/namespaces/default/pods/web-n1/exec", "command=ls&stdout=1", "*/*")
	f.Add("GET", "/api/v1/namespaces/shop/pods/../secrets", "fieldSelector=metadata.name%3Dkey", "application/json;q=x")
	n := kubetest.NewNode()
	api := newAPI(n)
	api.Meter = n
	h := api.Handler()
	f.Fuzz(func(t *testing.T, method, path, query, accept string) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // with a canceled context, watches end at once
		r := (&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{"Accept": {accept}}, Body: http.NoBody}).WithContext(ctx)
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler { // a recorder does not support deadlines
					panic(p)
				}
			}()
			h.ServeHTTP(w, r)
		}()
		if strings.Contains(w.Body.String(), `"dg=="`) && auth.RequestAttributes(r, "n1").Resource != "secrets" {
			t.Errorf("%s %q?%q: got a Secret in the response without an authorization for Secrets", method, path, query)
		}
	})
}

// TestAPI_Representations checks that objects are served in all representations that a client can
// request, such as a table.
func TestAPI_Representations(t *testing.T) {
	n := kubetest.NewNode()
	api := newAPI(n)
	api.Meter = n
	h := api.Handler()
	for _, c := range []struct{ target, accept, want string }{
		{"/api/v1/pods", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`},
		{"/api/v1/nodes/n1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"`},
		{"/api/v1/pods", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1003"},"columnDefinitions":[{"name":"Name"`},
		{"/api/v1/namespaces/default/pods?includeObject=Object", "application/json;as=Table;v=v1;g=meta.k8s.io", `"object":{"kind":"Pod","apiVersion":"v1"`},
		{"/apis/metrics.k8s.io/v1beta1/pods", "application/json;as=Table;v=v1;g=meta.k8s.io", `"cells":["web-n1"`},
		{"/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", `"responseKind":{"group":"authorization.k8s.io"`},
		{"/api", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", `"versions":["v1"]`},
		{"/api/v1/pods", "application/vnd.kubernetes.protobuf", `"reason":"NotAcceptable"`},
	} {
		if w := kubetest.SendRequest(t, h, "GET", c.target, c.accept, ""); !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s as %s: got %.300s, want %s in it", c.target, c.accept, w.Body, c.want)
		}
	}
}
