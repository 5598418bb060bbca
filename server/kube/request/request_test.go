package request

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/api", "get /api"},
		{"GET", "/api/", "get /api"},
		{"GET", "/api/v1", "get /api/v1"},
		{"GET", "/apis/metrics.k8s.io/v1beta1", "get /apis/metrics.k8s.io/v1beta1"},
		{"POST", "/version", "post /version"},
		{"GET", "/openapi/v3/api/v1", "get /openapi/v3/api/v1"},
		{"GET", "/api/v1/pods", "list /v1 pods"},
		{"GET", "/api/v1/pods?watch=1", "watch /v1 pods"},
		{"GET", "/api/v1/pods?watch", "watch /v1 pods"},
		{"GET", "/api/v1/pods?watch=False", "list /v1 pods"},
		{"GET", "/api/v1/namespaces/a/pods", "list /v1 a:pods"},
		{"GET", "/api/v1/namespaces/a/pods/?fieldSelector=metadata.name%3Dx", "list /v1 a:pods x"},
		{"GET", "/api/v1/pods?watch=true&fieldSelector=metadata.name%3D%3Dx,status.phase!=Failed", "watch /v1 pods x"},
		{"GET", "/api/v1/namespaces/a/pods/x", "get /v1 a:pods x"},
		{"HEAD", "/api/v1/namespaces/a/pods/x", "get /v1 a:pods x"},
		{"GET", "/api/v1/namespaces/a/pods/x/log", "get /v1 a:pods x/log"},
		{"GET", "/api/v1/namespaces/a/pods/x/proxy/b/c", "get /v1 a:pods x/proxy b/c"},
		{"GET", "/api/v1/namespaces/a/pods/x/exec", "create /v1 a:pods x/exec"},
		{"POST", "/api/v1/namespaces/a/pods/x/attach", "create /v1 a:pods x/attach"},
		{"PUT", "/api/v1/namespaces/a/pods/x/exec", "update /v1 a:pods x/exec"},
		{"POST", "/api/v1/namespaces/a/pods", "create /v1 a:pods"},
		{"PATCH", "/api/v1/namespaces/a/pods/x", "patch /v1 a:pods x"},
		{"DELETE", "/api/v1/namespaces/a/pods/x", "delete /v1 a:pods x"},
		{"DELETE", "/api/v1/namespaces/a/pods", "deletecollection /v1 a:pods"},
		{"BREW", "/api/v1/pods", " /v1 pods"},
		{"GET", "/api/v1/namespaces", "list /v1 namespaces"},
		{"GET", "/api/v1/namespaces/a", "get /v1 a:namespaces a"},
		{"GET", "/api/v1/namespaces/a/status", "get /v1 a:namespaces a/status"},
		{"GET", "/api/v1/namespaces/a/namespaces", "get /api/v1/namespaces/a/namespaces"},
		{"GET", "/api/v1/namespaces/a/namespaces/b?watch=1", "get /api/v1/namespaces/a/namespaces/b"},
		{"POST", "/apis/g/v1/namespaces/a/namespaces", "post /apis/g/v1/namespaces/a/namespaces"},
		{"GET", "/api/v1/nodes/n/status", "get /v1 nodes n/status"},
		{"GET", "/api/v1/nodes/proxy/proxy/stats/summary", "get /v1 nodes proxy/proxy stats/summary of the node's /stats/summary"},
		{"GET", "/api/v1/nodes/n/proxy/logs/", "get /v1 nodes n/proxy logs of the node's /logs/"},
		{"POST", "/api/v1/nodes/n/proxy", "create /v1 nodes n/proxy of the node's /"},
		{"GET", "/api/v1/nodes/n/proxy/a%2F..%2Fexec", "get /api/v1/nodes/n/proxy/a/../exec"},
		{"GET", "/api/v1/namespaces/a/nodes/n/proxy/pods", "get /v1 a:nodes n/proxy pods"},
		{"GET", "/apis/g/v1/nodes/n/proxy/pods", "get g/v1 nodes n/proxy pods"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "create authorization.k8s.io/v1 selfsubjectaccessreviews"},
		{"GET", "/api/v1/pods/../secrets", "get /api/v1/pods/../secrets"},
		{"GET", "/api//v1/secrets", "get /api//v1/secrets"},
		{"GET", "/api/v1/namespaces//secrets", "get /api/v1/namespaces//secrets"},
		{"GET", "/api/v1/namespaces/a%2Fsecrets", "list /v1 a:secrets"},
	} {
		if got := show(Parse(httptest.NewRequest(c.method, c.target, nil))); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.method, c.target, got, c.want)
		}
	}
}

func show(i Info) string {
	if i.Resource == "" {
		return i.Verb + " " + i.Path
	}
	s := i.Verb + " " + i.Group + "/" + i.Version + " "
	if i.Namespace != "" {
		s += i.Namespace + ":"
	}
	s += i.Resource
	if i.Name != "" {
		s += " " + i.Name
	}
	if i.Subresource != "" {
		s += "/" + i.Subresource
	}
	if i.RemainingPath != "" {
		s += " " + i.RemainingPath
	}
	if i.ProxiedPath != "" {
		s += " of the node's " + i.ProxiedPath
	}
	return s
}

// FuzzParse checks that a path with a resource is below a path of the API, and that no part of it
// contains a slash or traverses directories.
func FuzzParse(f *testing.F) {
	f.Add("GET", "/api/v1/namespaces/a/pods/b/log", "watch=1")
	f.Add("DELETE", "/apis/a/v1/namespaces/../secrets", "fieldSelector=metadata.name=x")
	f.Fuzz(func(t *testing.T, method, path, query string) {
		i := Parse(&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}})
		if i.Resource == "" {
			return
		}
		if !IsAPI(path) {
			t.Fatalf("%q is not a path of the API: got resource %q, want none", path, i.Resource)
		}
		for _, part := range []string{i.Group, i.Version, i.Namespace, i.Resource, i.Subresource} {
			if strings.Contains(part, "/") || part == "." || part == ".." {
				t.Fatalf("%q: got part %q, want no slash, . or ..", path, part)
			}
		}
	})
}
