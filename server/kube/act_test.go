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
	"podd/server/kubelet"
)

// acting are paths that lead into a container, as they are and in disguise.
var acting = []string{
	"/exec/default/web-n1/main?command=ls&output=1", "/exec/default/web-n1/u1/main?command=ls&output=1", "/attach/default/web-n1/main?output=1",
	"/portForward/default/web-n1", "/run/default/web-n1/main?cmd=ls", "/checkpoint/default/web-n1/main",
	"/%65xec/default/web-n1/main?command=ls&output=1", "/exec/default/web%2Dn1/main?command=ls&output=1", "/metrics/../run/default/web-n1/main?cmd=ls",
	"/metrics%2F../run/default/web-n1/main?cmd=ls", "//run/default/web-n1/main?cmd=ls", "/stats/%2e%2e/run/default/web-n1/main?cmd=ls", "/exec/metrics/../default/web-n1/main?command=ls&output=1",
}

// whole is a node as its port has it.
func (n *node) whole(dir string) http.Handler {
	own := &kubelet.API{State: n, Logs: n, Runtime: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler(), Debugging: true, Checkpoints: dir}
	api := n.api()
	api.Node = own.Handler()
	mux := http.NewServeMux()
	mux.Handle("/api/", api.Handler())
	mux.Handle("/", own.Handler())
	return mux
}

// acts says whether a request ran something in a container. It fails unless that
// was asked for as "create" of nothing but what grants it.
func (n *node) acts(t *testing.T, h http.Handler, method, target string) bool {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // watches end at once
	r, err := http.NewRequestWithContext(ctx, method, "http://n1", nil)
	if err != nil {
		return false
	}
	if r.URL, err = url.ParseRequestURI(target); err != nil {
		return false
	}
	n.asked = ""
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { // a recorder has no deadlines
				panic(p)
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	if n.asked == "" || strings.HasPrefix(n.asked, "{") { // a log
		return false
	}
	a := auth.Of(r, "n1")
	grants := []string{"proxy", "checkpoint"}
	if a.Resource == "pods" {
		grants = []string{"exec", "attach", "portforward"}
	}
	if a.Verb != "create" && a.Verb != "" || slices.ContainsFunc(a.Subresources, func(s string) bool { return !slices.Contains(grants, s) }) {
		t.Errorf("%s %s ran %q and was asked for as %+v", method, target, n.asked, a)
	}
	return true
}

// TestActs: these do run something, so that FuzzActs means something.
func TestActs(t *testing.T) {
	n := newNode()
	h := n.whole(t.TempDir())
	for _, path := range []string{acting[0], acting[1], acting[2], acting[3], acting[5], acting[6]} { // to run is left to chance by the ended context
		for _, prefix := range []string{"", "/api/v1/nodes/n1/proxy"} {
			if !n.acts(t, h, "POST", prefix+path) {
				t.Errorf("%s%s ran nothing", prefix, path)
			}
		}
	}
}

// FuzzActs: whatever runs something in a container, by whatever path, is asked for
// as "create" of the one resource that grants it: no right to look does.
func FuzzActs(f *testing.F) {
	const proxy = "/api/v1/nodes/n1/proxy"
	for _, path := range acting {
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
	n := newNode()
	h := n.whole(f.TempDir())
	f.Fuzz(func(t *testing.T, method, target string) {
		if !strings.Contains(target, "/pprof/") { // profiles take their time
			n.acts(t, h, method, target)
		}
	})
}
