package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/auth"
	"podd/server/kubelet"
)

// node is a machine with two pods and what belongs to them, as its API sees it.
type node struct {
	*server.Latest
	asked string
	url   string // of the runtime's server of streams
	log   string
}

func pod(namespace, name, uid string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("u" + uid), Labels: map[string]string{"app": strings.TrimSuffix(name, "-n1")}},
		Spec:       v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "main", Image: "web:1", Env: []v1.EnvVar{{Name: "A", Value: "b"}}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.2", ContainerStatuses: []v1.ContainerStatus{
			{Name: "main", ContainerID: "containerd://c-" + name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		}},
	}
}

func newNode() *node {
	web, two := pod("default", "web-n1", "1"), pod("shop", "two-n1", "2")
	two.Spec.Containers = append(two.Spec.Containers, v1.Container{Name: "side", Image: "s:1"})
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"}, Data: map[string][]byte{"k": []byte("v")}, Type: v1.SecretTypeOpaque}
	return &node{Latest: server.NewLatest(&server.View{
		Revision: 1000, Node: "n1", Version: "v9", Sources: []string{"/etc/podd/manifests"},
		Pods: []*server.PodView{
			{Pod: web, Path: "/etc/podd/manifests/web.yaml", Line: 3, Sandbox: "s-web"},
			{Pod: two, Path: "/etc/podd/manifests/two.yaml", Line: 1},
		},
		Machine: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n"}},
		Objects: func() *server.Objects {
			return &server.Objects{Secrets: []*server.ObjectView{{Object: secret, Path: "/etc/podd/manifests/two.yaml", Line: 20}}}
		},
	})}
}

// change publishes another View.
func (n *node) change(edit func(*server.View)) {
	next := *n.View()
	next.Revision++
	edit(&next)
	n.Publish(&next)
}

// put has a pod be another or new, at its place.
func (n *node) put(p *v1.Pod) {
	n.change(func(v *server.View) {
		var all []*server.PodView
		done := false
		for _, old := range v.Pods {
			switch at := (server.Key{Namespace: p.Namespace, Name: p.Name}).Compare(old.Key()); {
			case at <= 0 && !done:
				all, done = append(all, &server.PodView{Pod: p}), true
				if at == 0 {
					continue
				}
			}
			all = append(all, old)
		}
		if !done {
			all = append(all, &server.PodView{Pod: p})
		}
		v.Pods = all
	})
}

func (n *node) drop(name string) {
	n.change(func(v *server.View) {
		var all []*server.PodView
		for _, p := range v.Pods {
			if p.Pod.Name != name {
				all = append(all, p)
			}
		}
		v.Pods = all
	})
}

func (n *node) Exec(_ context.Context, id string, command []string, s kubelet.Streams) (string, error) {
	b, _ := json.Marshal(s)
	n.asked = "exec " + id + " " + strings.Join(command, "|") + " " + string(b)
	return n.url, nil
}

func (n *node) Attach(_ context.Context, id string, s kubelet.Streams) (string, error) {
	n.asked = "attach " + id
	return n.url, nil
}

func (n *node) PortForward(_ context.Context, sandbox string, ports []int32) (string, error) {
	n.asked = "forward " + sandbox
	return n.url, nil
}

func (n *node) Run(context.Context, string, []string) ([]byte, int32, error) {
	n.asked = "run"
	return nil, 0, nil
}

func (n *node) Checkpoint(context.Context, string, string, time.Duration) error {
	n.asked = "checkpoint"
	return nil
}

func (n *node) Usage(context.Context) (*server.Usage, error) {
	if n.log == "broken" {
		return nil, errors.New("no sample")
	}
	amount := server.Amounts{NanoCores: new(uint64(10e6)), WorkingSet: 5 << 20}
	return &server.Usage{At: time.Unix(7, 0), Node: amount, Pods: map[server.Key]server.PodUsage{
		{Namespace: "default", Name: "web-n1"}: {Amounts: amount, Containers: map[string]server.Amounts{"main": amount, "starting": {}}},
	}}, nil
}

func (n *node) Logs(_ context.Context, req server.LogRequest, w io.Writer) error {
	b, _ := json.Marshal(req)
	n.asked = string(b)
	_, err := io.WriteString(w, n.log)
	return err
}

func (n *node) api() *API {
	return &API{State: n, Logs: n, Runtime: n, Authorizer: auth.Policy{}, Debugging: true, Node: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "node: "+r.Method+" "+r.URL.String()) })}
}

// ask sends a request of somebody who may only learn what there is.
func ask(t testing.TB, h http.Handler, method, target, accept, body string) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, strings.NewReader(body))
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	h.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.User{Name: "bob", Groups: []string{"dev", "system:authenticated"}})))
	return w
}

// TestProxyRedirects: who follows a redirect of the node stays on its way there.
func TestProxyRedirects(t *testing.T) {
	api, mux := newNode().api(), http.NewServeMux()
	mux.Handle("/logs/", http.NotFoundHandler())
	mux.Handle("/away", http.RedirectHandler("https://example.com/x", http.StatusFound))
	api.Node = mux
	for path, want := range map[string]string{
		"/logs?query=x": "/api/v1/nodes/n1/proxy/logs/?query=x",
		"/away":         "https://example.com/x",
	} {
		w := ask(t, api.Handler(), "GET", "/api/v1/nodes/n1/proxy"+path, "", "")
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%s: %d %q, want %q", path, w.Code, got, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	n := newNode()
	n.log = "line\n"
	api := n.api()
	api.Usage = n
	h := api.Handler()
	const access = `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{`
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"GET", "/version", "", 200, `"gitVersion":"v1.34.4-podd"`},
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
		{"GET", "/api/v1/pods?resourceVersion=x", "", 400, "no number"},
		{"GET", "/api/v1/pods?resourceVersion=5000000", "", 504, "ResourceVersionTooLarge"},
		{"GET", "/api/v1/pods?resourceVersion=5&resourceVersionMatch=Exact", "", 410, `"reason":"Expired"`},
		{"GET", "/api/v1/pods?limit=1&continue=abc", "", 410, "every list is whole"},
		{"GET", "/api/v1/pods?watch=1&resourceVersion=5", "", 410, "too old resource version: 5"},
		{"GET", "/api/v1/pods?watch=1&sendInitialEvents=true", "", 400, "resourceVersionMatch"},
		{"GET", "/api/v1/pods?watch=1&timeoutSeconds=x", "", 400, "timeoutSeconds"},
		{"DELETE", "/api/v1/namespaces/default/pods/web-n1", "", 405, `pod \"web-n1\" is written in /etc/podd/manifests/web.yaml:3: remove it there and podd ends it`},
		{"PATCH", "/api/v1/namespaces/default/pods/web-n1", "", 405, `is written in /etc/podd/manifests/web.yaml:3: edit it there`},
		{"PUT", "/api/v1/namespaces/shop/secrets/key", "", 405, `secret \"key\" is written in /etc/podd/manifests/two.yaml:20: edit it there`},
		{"DELETE", "/api/v1/namespaces/default/pods/no", "", 404, `pods \"no\" not found`},
		{"DELETE", "/api/v1/pods", "", 405, "edit their manifests, /etc/podd/manifests, or start podd with --api-manifest-dir DIR"},
		{"DELETE", "/api/v1/nodes/n1", "", 405, "podd's own account"},
		{"POST", "/api/v1/namespaces/default/pods", "", 405, "write a manifest where it reads them, /etc/podd/manifests"},
		{"BREW", "/api/v1/namespaces/default/pods", "", 405, "this method is not served"},
		{"GET", "/api/v1/namespaces/default/pods/web-n1/log?tailLines=3", "", 200, "line\n"},
		{"GET", "/api/v1/namespaces/default/pods/web-n1/log?tailLines=x", "", 400, "no number"},
		{"GET", "/api/v1/namespaces/default/pods/web-n1/log?container=x", "", 400, "container x is not valid for pod web-n1, choose one of: [main]"},
		{"GET", "/api/v1/namespaces/shop/pods/two-n1/log", "", 400, "a container name must be specified for pod two-n1, choose one of: [main side]"},
		{"POST", "/api/v1/namespaces/default/pods/web-n1/exec?stdout=1", "", 400, "no command"},
		{"POST", "/api/v1/namespaces/default/pods/web-n1/exec?command=ls", "", 400, "at least 1 of"},
		{"POST", "/api/v1/namespaces/default/pods/no/exec?command=ls&stdout=1", "", 404, "not found"},
		{"POST", "/api/v1/namespaces/shop/pods/two-n1/portforward", "", 404, "does not run"},
		{"POST", "/api/v1/namespaces/default/pods/web-n1/exec?command=ls&stdout=true", "", 500, "named no address"},
		{"GET", "/apis/metrics.k8s.io/v1beta1/nodes", "", 200, `"usage":{"cpu":"10m","memory":"5Mi"}`},
		{"GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web-n1", "", 200, `"window":"0s","containers":[{"name":"main"`},
		{"GET", "/apis/metrics.k8s.io/v1beta1/pods?labelSelector=app%3Dtwo", "", 200, `"items":[]`},
		{"GET", "/apis/metrics.k8s.io/v1beta1/pods?watch=1", "", 405, "watch is not served"},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`, 201, `"username":"bob","groups":["dev","system:authenticated"]`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access + `"resourceAttributes":{"verb":"get","resource":"secrets"}}}`, 201, `"allowed":false`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access + `"nonResourceAttributes":{"verb":"get","path":"/api"}}}`, 201, `"allowed":true`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access + `}}`, 400, "exactly one of"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{}`, 400, "Kind=SelfSubjectAccessReview"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{`, 400, "reading the review"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", 415, "UnsupportedMediaType"},
		{"GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", 405, "only created"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","spec":{"namespace":"default"}}`, 201, `"nonResourceURLs":["/api"`},
	} {
		w := ask(t, h, c.method, c.target, "", c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: got %d %.600s\nwant %d %s", c.method, c.target, w.Code, w.Body, c.status, c.want)
		}
		if w.Code >= 400 {
			var s metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Kind != "Status" || s.APIVersion != "v1" || int(s.Code) != w.Code || s.Reason == "" {
				t.Errorf("%s %s: no Status of %d: %v %s", c.method, c.target, w.Code, err, w.Body)
			}
		}
	}
}

// TestNoFlagInCluster: what does nothing on a node of a cluster is not advised there.
func TestNoFlagInCluster(t *testing.T) {
	for cluster, want := range map[bool]bool{false: true, true: false} {
		api := newNode().api()
		api.OfCluster = cluster
		w := ask(t, api.Handler(), "POST", "/api/v1/namespaces/default/pods", "", "")
		if w.Code != 405 || strings.Contains(w.Body.String(), "--api-manifest-dir") != want {
			t.Errorf("in a cluster %t: %d %s", cluster, w.Code, w.Body)
		}
	}
}

// TestSince: a pod of a file is as old as its start, unless it tells.
func TestSince(t *testing.T) {
	n := newNode()
	started, told := metav1.NewTime(time.Unix(100, 0).UTC()), metav1.NewTime(time.Unix(50, 0).UTC())
	late := pod("default", "late-n1", "3")
	late.Status.StartTime = &started
	n.put(late)
	early := pod("default", "early-n1", "4")
	early.Status.StartTime, early.CreationTimestamp = &started, told
	n.put(early)
	h := n.api().Handler()
	for name, want := range map[string]string{"late-n1": "1970-01-01T00:01:40Z", "early-n1": "1970-01-01T00:00:50Z", "web-n1": ""} {
		w := ask(t, h, "GET", "/api/v1/namespaces/default/pods/"+name, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "")
		got := strings.Contains(w.Body.String(), `"creationTimestamp":"`+want+`"`)
		if want == "" {
			got = !strings.Contains(w.Body.String(), "creationTimestamp")
		}
		if w.Code != 200 || !got {
			t.Errorf("%s: %d %s, want %s", name, w.Code, w.Body, want)
		}
	}
	if late.CreationTimestamp != (metav1.Time{}) {
		t.Error("the shared pod was written to")
	}
}

// TestDisabled: what may not be asked is said to be disabled, all else goes on.
func TestDisabled(t *testing.T) {
	n := newNode()
	api := n.api()
	api.Debugging = false
	h := api.Handler()
	const pod = "/api/v1/namespaces/default/pods/web-n1"
	for _, sub := range []string{"/log", "/exec?command=ls&stdout=1", "/attach?stdout=1", "/portforward"} {
		for _, method := range []string{"GET", "POST"} {
			w := ask(t, h, method, pod+sub, "", "")
			var s metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 405 || s.Code != 405 || s.Message != "Debug endpoints are disabled." {
				t.Errorf("%s %s: %d %s", method, sub, w.Code, w.Body)
			}
		}
	}
	if w := ask(t, h, "GET", pod+"/status", "", ""); w.Code != 200 {
		t.Errorf("status: %d %s", w.Code, w.Body)
	}
	if n.asked != "" {
		t.Errorf("asked for %s", n.asked)
	}
}

// TestAcceptLines: every line of the header counts.
func TestAcceptLines(t *testing.T) {
	h := newNode().api().Handler()
	for target, accept := range map[string]string{
		"/api/v1/pods": "application/json;as=Table;v=v1;g=meta.k8s.io",
		"/apis":        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", target, nil)
		r.Header["Accept"] = []string{"application/vnd.kubernetes.protobuf", accept}
		h.ServeHTTP(w, r)
		kind := strings.Contains(w.Body.String(), `"kind":"Table"`) || strings.Contains(w.Body.String(), `"kind":"APIGroupDiscoveryList"`)
		if w.Code != 200 || !kind {
			t.Errorf("%s: %d %.200s", target, w.Code, w.Body)
		}
	}
}
