package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	discovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server/auth"
	"podd/server/kube/kubetest"
)

// newAPI returns the API of a node.
func newAPI(n *kubetest.Node) *API {
	return &API{KubernetesVersion: "v1.37.2", State: n, Logs: n, Runtime: n, Authorizer: auth.Policy{}, DebuggingEnabled: true, NodeProxy: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "node: "+r.Method+" "+r.URL.String()) })}
}

// TestProxy_Redirects checks that a redirect from the node to one of its own paths becomes a redirect
// to a path below that of the proxy. A redirect to another host must not change.
func TestProxy_Redirects(t *testing.T) {
	api, mux := newAPI(kubetest.NewNode()), http.NewServeMux()
	mux.Handle("/logs/", http.NotFoundHandler())
	mux.Handle("/away", http.RedirectHandler("https://example.com/x", http.StatusFound))
	api.NodeProxy = mux
	for path, want := range map[string]string{
		"/logs?query=x": "/api/v1/nodes/n1/proxy/logs/?query=x",
		"/away":         "https://example.com/x",
	} {
		w := kubetest.SendRequest(t, api.Handler(), "GET", "/api/v1/nodes/n1/proxy"+path, "", "")
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%s: got status %d, Location %q; want Location %q", path, w.Code, got, want)
		}
	}
}

func TestAPI(t *testing.T) {
	n := kubetest.NewNode()
	n.LogText = "line\n"
	api := newAPI(n)
	api.Meter = n
	h := api.Handler()
	const access = `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{`
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"GET", "/version", "", 200, `"gitVersion":"v1.37.2-podd"`},
		{"GET", "/api", "", 200, `"versions":["v1"]`},
		{"GET", "/api/v1", "", 200, `{"name":"pods/log","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]}`},
		{"GET", "/apis", "", 200, `"groupVersion":"metrics.k8s.io/v1beta1"`},
		{"GET", "/apis/metrics.k8s.io", "", 200, `"kind":"APIGroup"`},
		{"GET", "/apis/metrics.k8s.io/v1beta1", "", 200, `"kind":"PodMetrics"`},
		{"GET", "/apis/apps", "", 404, `"reason":"NotFound"`},
		{"GET", "/openapi/v3", "", 200, "api/v1"},
		{"POST", "/api", "", 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/api/v1/pods", "", 200, `"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002"}`},
		{"GET", "/api/v1/namespaces/default/pods/web-n1", "", 200, `"env":[{"name":"A","value":"b"}]`},
		{"GET", "/api/v1/namespaces/default/pods/web-n1/status", "", 200, `"resourceVersion":"1001"`},
		{"GET", "/api/v1/namespaces/default/pods/web", "", 404, `pods \"web\" not found; did you mean \"web-n1\"?`},
		{"GET", "/api/v1/namespaces/default/pods/web-n1/scale", "", 404, `NotFound`},
		{"GET", "/api/v1/pods/web-n1", "", 404, "NotFound"},
		{"GET", "/api/v1/namespaces/default/nodes", "", 404, "NotFound"},
		{"GET", "/api/v1/services", "", 404, "the server could not find the requested resource"},
		{"GET", "/api/v2/pods", "", 404, "NotFound"},
		{"GET", "/api/v1/namespaces/../pods", "", 404, "NotFound"},
		{"GET", "/api/v1/nodes/n1", "", 200, `"kind":"Node"`},
		{"GET", "/api/v1/nodes/n1/proxy/logs/?query=x", "", 200, "node: GET /logs/?query=x"},
		{"POST", "/api/v1/nodes/n1/proxy/stats/summary", "", 200, "node: POST /stats/summary"},
		{"GET", "/api/v1/nodes/n1/proxy/logs/a%2Fb", "", 200, "node: GET /logs/a%2Fb"},
		{"GET", "/api/v1/nodes/n2/proxy/pods", "", 404, `nodes \"n2\" not found`},
		{"GET", "/api/v1/namespaces/default/nodes/n1/proxy/pods", "", 404, "NotFound"},
		{"GET", "/api/v1/nodes/n1/proxy/a/../pods", "", 404, "NotFound"},
		{"GET", "/api/v1/nodes/n1/status/pods", "", 404, "NotFound"},
		{"GET", "/api/v1/namespaces", "", 200, `"name":"shop"`},
		{"GET", "/api/v1/namespaces/shop", "", 200, `"phase":"Active"`},
		{"GET", "/api/v1/namespaces/shop/namespaces", "", 404, "NotFound"},
		{"GET", "/api/v1/namespaces/shop/namespaces/shop", "", 404, "NotFound"},
		{"GET", "/api/v1/namespaces/nowhere", "", 404, `namespaces \"nowhere\" not found`},
		{"GET", "/api/v1/namespaces/nowhere/pods", "", 200, `"items":[]`},
		{"GET", "/api/v1/secrets?fieldSelector=type%3DOpaque", "", 200, `"data":{"k":"dg=="}`},
		{"GET", "/api/v1/events", "", 200, `"kind":"EventList"`},
		{"GET", "/api/v1/configmaps", "", 200, `"items":[]`},
		{"GET", "/api/v1/pods?fieldSelector=status.colour%3Dred", "", 400, "field label not supported: status.colour"},
		{"GET", "/api/v1/pods?labelSelector=%25", "", 400, "labelSelector: "},
		{"GET", "/api/v1/pods?resourceVersion=x", "", 400, "not a number"},
		{"GET", "/api/v1/pods?resourceVersion=5000000", "", 504, "ResourceVersionTooLarge"},
		{"GET", "/api/v1/pods?resourceVersion=5&resourceVersionMatch=Exact", "", 410, `"reason":"Expired"`},
		{"GET", "/api/v1/pods?limit=1&continue=abc", "", 410, "every list is complete"},
		{"GET", "/api/v1/pods?watch=1&resourceVersion=5", "", 410, "too old resource version: 5"},
		{"GET", "/api/v1/pods?watch=1&sendInitialEvents=true", "", 400, "resourceVersionMatch"},
		{"GET", "/api/v1/pods?watch=1&timeoutSeconds=x", "", 400, "timeoutSeconds"},
		{"DELETE", "/api/v1/namespaces/default/pods/web-n1", "", 405, `pod \"web-n1\" is defined in /etc/podd/manifests/web.yaml:3; remove it from that file to delete it`},
		{"PATCH", "/api/v1/namespaces/default/pods/web-n1", "", 405, `is defined in /etc/podd/manifests/web.yaml:3; edit that file to change it`},
		{"PUT", "/api/v1/namespaces/shop/secrets/key", "", 405, `secret \"key\" is defined in /etc/podd/manifests/two.yaml:20; edit that file to change it`},
		{"DELETE", "/api/v1/namespaces/default/pods/no", "", 404, `pods \"no\" not found`},
		{"DELETE", "/api/v1/pods", "", 405, "edit their manifests in /etc/podd/manifests, or start podd with --api-manifest-dir DIR"},
		{"DELETE", "/api/v1/nodes/n1", "", 405, "managed by podd"},
		{"POST", "/api/v1/namespaces/default/pods", "", 405, "write a manifest in /etc/podd/manifests"},
		{"BREW", "/api/v1/namespaces/default/pods", "", 405, "this method is not supported"},
		{"GET", "/api/v1/namespaces/default/pods/web-n1/log?tailLines=3", "", 200, "line\n"},
		{"GET", "/api/v1/namespaces/default/pods/web-n1/log?tailLines=x", "", 400, "not a number"},
		{"GET", "/api/v1/namespaces/default/pods/web-n1/log?container=x", "", 400, "container x is not valid for pod web-n1, choose one of: [main]"},
		{"GET", "/api/v1/namespaces/shop/pods/two-n1/log", "", 400, "a container name must be specified for pod two-n1, choose one of: [main side]"},
		{"POST", "/api/v1/namespaces/default/pods/web-n1/exec?stdout=1", "", 400, "no command"},
		{"POST", "/api/v1/namespaces/default/pods/web-n1/exec?command=ls", "", 400, "at least 1 of"},
		{"POST", "/api/v1/namespaces/default/pods/no/exec?command=ls&stdout=1", "", 404, "not found"},
		{"POST", "/api/v1/namespaces/shop/pods/two-n1/portforward", "", 404, "is not running"},
		{"POST", "/api/v1/namespaces/default/pods/web-n1/exec?command=ls&stdout=true", "", 500, "returned no valid URL of its streaming server"},
		{"GET", "/apis/metrics.k8s.io/v1beta1/nodes", "", 200, `"usage":{"cpu":"10m","memory":"5Mi"}`},
		{"GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web-n1", "", 200, `"window":"0s","containers":[{"name":"main"`},
		{"GET", "/apis/metrics.k8s.io/v1beta1/pods?labelSelector=app%3Dtwo", "", 200, `"items":[]`},
		{"GET", "/apis/metrics.k8s.io/v1beta1/pods?watch=1", "", 405, "watch is not supported"},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`, 201, `"username":"bob","groups":["dev","system:authenticated"]`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access + `"resourceAttributes":{"verb":"get","resource":"secrets"}}}`, 201, `"allowed":false`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access + `"nonResourceAttributes":{"verb":"get","path":"/api"}}}`, 201, `"allowed":true`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access + `}}`, 400, "exactly one of"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{}`, 400, "Kind=SelfSubjectAccessReview"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{`, 400, "decoding the review"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", 415, "UnsupportedMediaType"},
		{"GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", 405, "only be created"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","spec":{"namespace":"default"}}`, 201, `"nonResourceURLs":["/api"`},
	} {
		w := kubetest.SendRequest(t, h, c.method, c.target, "", c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: got %d %.600s\nwant %d %s", c.method, c.target, w.Code, w.Body, c.status, c.want)
		}
		if w.Code >= 400 {
			var s metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Kind != "Status" || s.APIVersion != "v1" || int(s.Code) != w.Code || s.Reason == "" {
				t.Errorf("%s %s: want a Status with code %d, got error %v and %s", c.method, c.target, w.Code, err, w.Body)
			}
		}
	}
}

// TestUnsupported_InCluster checks that, in a cluster, errors do not recommend a flag that has no
// effect there.
func TestUnsupported_InCluster(t *testing.T) {
	for cluster, want := range map[bool]bool{false: true, true: false} {
		api := newAPI(kubetest.NewNode())
		api.InCluster = cluster
		w := kubetest.SendRequest(t, api.Handler(), "POST", "/api/v1/namespaces/default/pods", "", "")
		if w.Code != 405 || strings.Contains(w.Body.String(), "--api-manifest-dir") != want {
			t.Errorf("in a cluster %t: got %d %s, want 405; response contains --api-manifest-dir: %t", cluster, w.Code, w.Body, want)
		}
	}
}

// TestAPI_CreationTimestamp checks that a pod of a file without creationTimestamp is shown with its
// start time.
func TestAPI_CreationTimestamp(t *testing.T) {
	n := kubetest.NewNode()
	started, created := metav1.NewTime(time.Unix(100, 0).UTC()), metav1.NewTime(time.Unix(50, 0).UTC())
	late := kubetest.Pod("default", "late-n1", "3")
	late.Status.StartTime = &started
	n.PutPod(late)
	early := kubetest.Pod("default", "early-n1", "4")
	early.Status.StartTime, early.CreationTimestamp = &started, created
	n.PutPod(early)
	h := newAPI(n).Handler()
	for name, want := range map[string]string{"late-n1": "1970-01-01T00:01:40Z", "early-n1": "1970-01-01T00:00:50Z", "web-n1": ""} {
		w := kubetest.SendRequest(t, h, "GET", "/api/v1/namespaces/default/pods/"+name, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "")
		got := strings.Contains(w.Body.String(), `"creationTimestamp":"`+want+`"`)
		if want == "" {
			got = !strings.Contains(w.Body.String(), "creationTimestamp")
		}
		if w.Code != 200 || !got {
			t.Errorf("%s: got %d %s, want %s", name, w.Code, w.Body, want)
		}
	}
	if late.CreationTimestamp != (metav1.Time{}) {
		t.Error("the handler modified the pod of the View")
	}
}

// TestAPI_DebuggingDisabled checks that, if debugging is disabled, the subresources for debugging
// respond with an error that names this cause, and that all other subresources are served.
func TestAPI_DebuggingDisabled(t *testing.T) {
	n := kubetest.NewNode()
	api := newAPI(n)
	api.DebuggingEnabled = false
	h := api.Handler()
	const pod = "/api/v1/namespaces/default/pods/web-n1"
	for _, sub := range []string{"/log", "/exec?command=ls&stdout=1", "/attach?stdout=1", "/portforward"} {
		for _, method := range []string{"GET", "POST"} {
			w := kubetest.SendRequest(t, h, method, pod+sub, "", "")
			var s metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 405 || s.Code != 405 || s.Message != "Debug endpoints are disabled." {
				t.Errorf("%s %s: got %d %s, want 405", method, sub, w.Code, w.Body)
			}
		}
	}
	if w := kubetest.SendRequest(t, h, "GET", pod+"/status", "", ""); w.Code != 200 {
		t.Errorf("status: got %d %s, want 200", w.Code, w.Body)
	}
	if n.LastCall != "" {
		t.Errorf("got call %s, want none", n.LastCall)
	}
}

// TestAPI_SeveralAcceptHeaders checks that all Accept headers of a request are evaluated, and not
// only the first.
func TestAPI_SeveralAcceptHeaders(t *testing.T) {
	h := newAPI(kubetest.NewNode()).Handler()
	for target, accept := range map[string]string{
		"/api/v1/pods": "application/json;as=Table;v=v1;g=meta.k8s.io",
		"/apis":        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", target, nil)
		r.Header["Accept"] = []string{"application/vnd.kubernetes.protobuf", accept}
		h.ServeHTTP(w, r)
		kind := strings.Contains(w.Body.String(), `"kind":"Table"`) || strings.Contains(w.Body.String(), `"kind":"APIGroupDiscoveryList"`)
		if w.Code != 200 || !kind {
			t.Errorf("%s: got %d %.200s, want 200 and the requested kind", target, w.Code, w.Body)
		}
	}
}

// TestAPI_AggregatedDiscovery checks that the aggregated discovery has the format of
// apidiscovery.k8s.io/v2, with the same encoding as the upstream types.
func TestAPI_AggregatedDiscovery(t *testing.T) {
	h := newAPI(kubetest.NewNode()).Handler()
	for _, path := range []string{"/api", "/apis"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		h.ServeHTTP(w, r)
		var list discovery.APIGroupDiscoveryList
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		want, err := json.Marshal(&list)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Body.String(); got != string(want) {
			t.Errorf("%s: got\n%s\nwant the encoding of the upstream types\n%s", path, got, want)
		}
		if list.Kind != "APIGroupDiscoveryList" || list.APIVersion != discovery.SchemeGroupVersion.String() || len(list.Items) == 0 {
			t.Errorf("%s: got a %s of %s with %d groups, want an APIGroupDiscoveryList of %s with groups", path, list.Kind, list.APIVersion, len(list.Items), discovery.SchemeGroupVersion)
		}
		for _, g := range list.Items {
			for _, v := range g.Versions {
				if v.Freshness != discovery.DiscoveryFreshnessCurrent || len(v.Resources) == 0 {
					t.Errorf("%s: group %q: got %+v, want a current version with resources", path, g.Name, v)
				}
				for _, r := range v.Resources {
					if r.ResponseKind == nil || r.ResponseKind.Kind == "" || r.Scope != discovery.ScopeCluster && r.Scope != discovery.ScopeNamespace || len(r.Verbs) == 0 {
						t.Errorf("%s: got %+v, want a resource with a kind, a scope and verbs", path, r)
					}
				}
			}
		}
	}
}
