package server

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func readOnly(views ...*PodView) *ReadOnlyHandler {
	some := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	return &ReadOnlyHandler{State: NewLatestView(&View{Pods: views}), Health: &Health{}, Stats: some, Page: some, Node: "Node1"}
}

func TestReadOnly_Hosts(t *testing.T) {
	for host, want := range map[string]int{
		"localhost":           200,
		"localhost:10255":     200,
		"LOCALHOST.":          200,
		"127.0.0.1:10255":     200,
		"127.9.9.9":           200,
		"[::1]:10255":         200,
		"[::1]":               200,
		"[::ffff:127.0.0.1]":  200,
		"10.1.2.3:10255":      200, // local address of the connection
		"node1":               200,
		"node1:10255":         200,
		"":                    200,
		"10.1.2.4":            421,
		"example.org":         421,
		"example.org:10255":   421,
		"localhost.evil.org":  421,
		"127.0.0.1.nip.io":    421,
		"[2001:db8::1]":       421,
		"[2001:db8::1]:10255": 421,
		"0.0.0.0":             421, // not over loopback; see TestIsKnownHost
		"127.1":               421,
		"[":                   421,
	} {
		if got := sendTo(readOnly(), "GET", "/pods", host); got.Code != want {
			t.Errorf("Host %q: got %d %q, want %d", host, got.Code, got.Body, want)
		}
	}
}

// TestReadOnly_BrowserHosts checks that requests of a browser are rejected if their Host is a node
// name that any host on the network of the browser could claim.
func TestReadOnly_BrowserHosts(t *testing.T) {
	browser := http.Header{"User-Agent": {"Mozilla/5.0 (X11)"}, "Accept-Language": {"en"}}
	for _, c := range []struct {
		node, host string
		header     http.Header
		want       int
	}{
		{"Node1", "localhost:10255", browser, 200},
		{"Node1", "127.0.0.1:10255", browser, 200},
		{"Node1", "node1:10255", browser, 421},
		{"Node1", "node1.", browser, 421},
		{"Node1", "node1:10255", http.Header{"Origin": {"http://node1:10255"}}, 421},
		{"Node1", "node1:10255", http.Header{"User-Agent": {"Prometheus/3.0"}}, 200},
		{"node1.local", "node1.local", browser, 421},
		{"node1.example.org", "node1.example.org:10255", browser, 200},
		{"localhost", "localhost:10255", browser, 200},
	} {
		h := readOnly()
		h.Node = c.node
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/pods", nil)
		r.Host, r.Header = c.host, c.header
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("node %s, Host %q, header %v: got %d %q, want %d", c.node, c.host, c.header, w.Code, w.Body, c.want)
		}
	}
}

func TestReadOnly_Routes(t *testing.T) {
	tests := []struct {
		method, path string
		status       int
	}{
		{"GET", "/pods", 200},
		{"GET", "/pods/", 200},
		{"HEAD", "/pods", 200},
		{"GET", "/stats/summary", 200},
		{"GET", "/metrics/resource", 200},
		{"GET", "/metrics/cadvisor", 200},
		{"GET", "/metrics", 200},
		{"GET", "/metrics/probes", 200},
		{"POST", "/stats/summary", 200},
		{"POST", "/stats/other", 405},
		{"POST", "/metrics", 405},
		{"GET", "/healthz", 200},
		{"GET", "/healthz/ping", 200},
		{"POST", "/pods", 405},
		{"DELETE", "/nothing", 405},
		{"GET", "/livez", 200},
		{"GET", "/readyz", 200},
		{"GET", "/readyz/nothing", 404},
		{"POST", "/readyz", 405},
		{"GET", "/pods/web", 404},
		{"GET", "/exec/default/web/app", 405},
		{"POST", "/exec/default/web/app", 405},
		{"POST", "/run/default/web/app", 405},
		{"GET", "/runningpods", 405},
		{"GET", "/runningpods/", 405},
		{"GET", "/logs/syslog", 405},
		{"GET", "/containerLogs/default/web/app", 405},
		{"GET", "/debug/pprof/heap", 405},
		{"PUT", "/debug/flags/v", 405},
		{"GET", "/debug/flags/v", 404},
		{"GET", "/checkpoint/default/web/app", 404},
		{"GET", "/configz", 404},
		{"GET", "/api/v1/pods", 404},
		{"GET", "/", 200},
		{"GET", "/page/state", 200},
		{"GET", "/v1/state", 404},
	}
	for _, tt := range tests {
		if got := sendTo(readOnly(), tt.method, tt.path, "localhost"); got.Code != tt.status {
			t.Errorf("%s %s: got %d, want %d", tt.method, tt.path, got.Code, tt.status)
		}
	}
}

func TestReadOnly_EnvValues(t *testing.T) {
	const secret = "s3cret"
	env := []v1.EnvVar{{Name: "TOKEN", Value: secret}, {Name: "NODE", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	p := pod("web-node1")
	p.Pod.Annotations = map[string]string{v1.LastAppliedConfigAnnotation: `{"value":"` + secret + `"}`, "token": secret, "kubernetes.io/config.source": "file"}
	p.Pod.Spec = v1.PodSpec{
		InitContainers:      []v1.Container{{Name: "init", Env: env}},
		Containers:          []v1.Container{{Name: "app", Args: []string{"-v"}, Env: env}},
		EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Env: env}}},
	}
	p.Pod.Status = v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.88.0.3"}
	before := p.Pod.DeepCopy()

	got := sendTo(readOnly(p), "GET", "/pods", "localhost")
	if strings.Contains(got.Body.String(), secret) {
		t.Errorf("the response contains the value of an environment variable: %s", got.Body)
	}
	if diff := cmp.Diff(before, p.Pod); diff != "" {
		t.Errorf("the handler modified the pod of the View (-before +after):\n%s", diff)
	}
	var list v1.PodList
	if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	env[0].Value = ""
	want := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{*before.DeepCopy()}}
	want.Items[0].TypeMeta = metav1.TypeMeta{}
	want.Items[0].Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	want.Items[0].Spec.InitContainers[0].Env = env
	want.Items[0].Spec.Containers[0].Env = env
	want.Items[0].Spec.EphemeralContainers[0].Env = env
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("/pods (-want +got):\n%s", diff)
	}
	if ct := got.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("got Content-Type %q, want application/json", ct)
	}
}

func TestReadOnly_NoPods(t *testing.T) {
	const want = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`
	if got := sendTo(readOnly(), "GET", "/pods", "localhost").Body.String(); got != want {
		t.Errorf("/pods: got %s, want %s", got, want)
	}
}

// TestReadOnly_UnreadBody checks that a request that announces a body and never sends the body gets
// a response, and that the connection is closed.
func TestReadOnly_UnreadBody(t *testing.T) {
	addr := serve(t, &Server{Handler: readOnly()})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /pods HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || !resp.Close {
		t.Errorf("got status %d and Close %v, want 200 and true", resp.StatusCode, resp.Close)
	}
}

func TestReadOnly_HeaderLimit(t *testing.T) {
	addr := serve(t, &Server{Handler: readOnly()})
	r, _ := http.NewRequest("GET", "http://"+addr+"/pods", nil)
	r.Header.Set("X-Long", strings.Repeat("x", 2*maxHeaderBytes))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got status %d, want 431", resp.StatusCode)
	}
}
