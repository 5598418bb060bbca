package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"podd/server/auth"
	"podd/server/kube/kubetest"
	"podd/server/kubelet"
)

// actingPaths are paths of requests that run a process in a container. Some are obfuscated.
var actingPaths = []string{
	"/exec/default/web-n1/main?command=ls&output=1", "/exec/default/web-n1/u1/main?command=ls&output=1", "/attach/default/web-n1/main?output=1",
	"/portForward/default/web-n1", "/run/default/web-n1/main?cmd=ls", "/checkpoint/default/web-n1/main",
	"/%65xec/default/web-n1/main?command=ls&output=1", "/exec/default/web%2Dn1/main?command=ls&output=1", "/metrics/../run/default/web-n1/main?cmd=ls",
	"/metrics%2F../run/default/web-n1/main?cmd=ls", "//run/default/web-n1/main?cmd=ls", "/stats/%2e%2e/run/default/web-n1/main?cmd=ls", "/exec/metrics/../default/web-n1/main?command=ls&output=1",
}

// portHandler returns the handler of the kubelet's port.
func portHandler(n *kubetest.Node, dir string) http.Handler {
	own := &kubelet.API{State: n, Logs: n, Runtime: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler(), DebuggingEnabled: true, CheckpointDir: dir}
	api := newAPI(n)
	api.NodeProxy = own.Handler()
	mux := http.NewServeMux()
	mux.Handle("/api/", api.Handler())
	mux.Handle("/", own.Handler())
	return mux
}

// acts reports whether a request ran a process in a container. If it did, the test fails
// unless the request was authorized with the verb create and for a subresource that allows
// running processes.
func acts(t *testing.T, n *kubetest.Node, h http.Handler, method, target string) bool {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // with a canceled context, watches end at once
	r, err := http.NewRequestWithContext(ctx, method, "http://n1", nil)
	if err != nil {
		return false
	}
	if r.URL, err = url.ParseRequestURI(target); err != nil {
		return false
	}
	n.LastCall = ""
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { // a recorder does not support deadlines
				panic(p)
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	if n.LastCall == "" || strings.HasPrefix(n.LastCall, "{") { // a request for a log
		return false
	}
	a := auth.RequestAttributes(r, "n1")
	grants := []string{"proxy", "checkpoint"}
	if a.Resource == "pods" {
		grants = []string{"exec", "attach", "portforward"}
	}
	if a.Verb != "create" && a.Verb != "" || slices.ContainsFunc(a.Subresources, func(s string) bool { return !slices.Contains(grants, s) }) {
		t.Errorf("%s %s ran %q: authorized as %+v, want the verb create and a subresource that allows running processes", method, target, n.LastCall, a)
	}
	return true
}

// TestActs checks that each path in actingPaths runs a process in a container, so that FuzzActs is
// meaningful.
func TestActs(t *testing.T) {
	n := kubetest.NewNode()
	h := portHandler(n, t.TempDir())
	for _, path := range []string{actingPaths[0], actingPaths[1], actingPaths[2], actingPaths[3], actingPaths[5], actingPaths[6]} { // /run may see the canceled context first
		for _, prefix := range []string{"", "/api/v1/nodes/n1/proxy"} {
			if !acts(t, n, h, "POST", prefix+path) {
				t.Errorf("%s%s: got no process in a container, want one", prefix, path)
			}
		}
	}
}

// FuzzActs checks that a request that runs a process in a container is authorized with the verb
// create and the subresource for that operation, no matter how its path is written. A read
// permission is never sufficient.
func FuzzActs(f *testing.F) {
	const proxy = "/api/v1/nodes/n1/proxy"
	for _, path := range actingPaths {
		for _, method := range []string{"GET", "POST"} {
			f.Add(method, path)
			f.Add(method, proxy+path)
			f.Add(method, "/api/v1/nodes/%6e1/proxy"+path)
			f.Add(method, "/api/v1/namespaces/default/nodes/n1/proxy"+path)
		}
	}
	for _, sub := range []string{"exec?command=ls&stdout=1", "attach?stdout=1", "portforward", "%65xec?command=ls&stdout=1", "exec/?command=ls&stdout=1"} {
		f.Add("GET", "/api/v1/namespaces/default/pods/web-n1/"+sub)
		f.Add("POST", "/api/v1/namespaces/default/pods/web-n1/"+sub)
	}
	n := kubetest.NewNode()
	h := portHandler(n, f.TempDir())
	f.Fuzz(func(t *testing.T, method, target string) {
		if !strings.Contains(target, "/pprof/") { // profiles take long
			acts(t, n, h, method, target)
		}
	})
}
