package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const kubePolicy = policy + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pods}
rules:
- {apiGroups: [""], resources: [pods, pods/log], verbs: [get, list, watch]}
- {nonResourceURLs: [/stuff/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one, namespace: a}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list], resourceNames: [s1]}
- {apiGroups: [""], resources: [pods/exec], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pods}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pods}
subjects: [{kind: User, name: viewer}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pods, namespace: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pods}
subjects: [{kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: one, namespace: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one}
subjects: [{kind: User, name: tenant}]
`

func TestPolicyOfKubernetes(t *testing.T) {
	p, err := ParsePolicy([]byte(kubePolicy))
	if err != nil {
		t.Fatal(err)
	}
	known := func(name string) User { return User{Name: name, Groups: []string{authenticated}} }
	for _, c := range []struct {
		user         User
		method, path string
		want         bool
	}{
		{known("eve"), "GET", "/api", true},
		{known("eve"), "GET", "/apis/metrics.k8s.io/v1beta1", true},
		{known("eve"), "GET", "/openapi/v3", true},
		{known("eve"), "GET", "/version", true},
		{known("eve"), "POST", "/version", false},
		{User{Name: anonymous, Groups: []string{unauthenticated}}, "GET", "/version", false},
		{known("eve"), "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true},
		{known("eve"), "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", true},
		{known("eve"), "GET", "/api/v1/pods", false},
		{known("viewer"), "GET", "/api/v1/pods?watch=1", true},
		{known("viewer"), "GET", "/api/v1/namespaces/a/pods/x/log", true},
		{known("viewer"), "GET", "/api/v1/namespaces/a/pods/x/exec", false},
		{known("viewer"), "DELETE", "/api/v1/namespaces/a/pods/x", false},
		{known("viewer"), "GET", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", false},
		{known("tenant"), "PATCH", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", false}, // though it may exec
		{Root(), "PATCH", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", true},
		{known("viewer"), "GET", "/api/v1/secrets", false},
		{known("viewer"), "GET", "/api/v1/nodes", false},
		{known("tenant"), "GET", "/api/v1/pods", false},
		{known("tenant"), "GET", "/api/v1/namespaces/b/pods", true},
		{known("tenant"), "GET", "/api/v1/namespaces/a/pods", false},
		{known("tenant"), "GET", "/api/v1/namespaces/a/secrets/s1", true},
		{known("tenant"), "GET", "/api/v1/namespaces/a/secrets/s2", false},
		{known("tenant"), "GET", "/api/v1/namespaces/a/secrets", false},
		{known("tenant"), "GET", "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Ds1", true},
		{known("tenant"), "GET", "/api/v1/namespaces/a/pods/x/exec", true},
		{known("tenant"), "POST", "/api/v1/namespaces/b/pods/x/exec", false},
		{Root(), "DELETE", "/api/v1/pods", true},
	} {
		if got := allows(t, p, c.user, Of(httptest.NewRequest(c.method, c.path, nil), "n1")); got != c.want {
			t.Errorf("%s %s %s: %t", c.user, c.method, c.path, got)
		}
	}
	if !allows(t, p, known("viewer"), Attributes{Verb: "get", Path: "/stuff/here"}) || allows(t, p, known("viewer"), Attributes{Verb: "get", Path: "/stuff"}) {
		t.Error("/stuff/* is not what is below /stuff")
	}
	in, _ := p.Rules(known("tenant"), "a")
	out, _ := p.Rules(known("tenant"), "c")
	if len(in) != len(toAll)+2 || len(out) != len(toAll) {
		t.Errorf("rules of tenant: %d in a, %d in c", len(in), len(out))
	}
}

func TestGuardSpeaksKubernetes(t *testing.T) {
	tokens, err := ParseTokens([]byte("abc,prom,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := &Guard{Authenticator: &Authenticator{Tokens: func() Tokens { return tokens }}, Authorizer: Policy{}, Node: "n1",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(From(r.Context()).String())) })}
	for _, c := range []struct {
		token, path string
		status      int
		want        string
	}{
		{"abc", "/version", 200, "prom (system:authenticated)"},
		{"no", "/version", 401, `"reason":"Unauthorized"`},
		{"abc", "/api/v1/namespaces/a/pods/x/log", 403, `"pods \"x\" is forbidden: User \"prom\" cannot get resource \"pods/log\" in API group \"\" in the namespace \"a\""`},
		{"abc", "/api/v1/nodes", 403, `"nodes is forbidden: User \"prom\" cannot list resource \"nodes\" in API group \"\" at the cluster scope","reason":"Forbidden"`},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", c.path, nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		g.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s with %q: %d %s", c.path, c.token, w.Code, w.Body)
		}
	}
}

const helpers = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: help}
rules:
- {apiGroups: [""], resources: [users], verbs: [impersonate], resourceNames: [viewer, tenant]}
- {apiGroups: [""], resources: [groups], verbs: [impersonate], resourceNames: [monitoring]}
- {apiGroups: [""], resources: [serviceaccounts], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: help}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: help}
subjects: [{kind: User, name: helper}]
`

// TestImpersonation: who may be taken for somebody else may what that one may, and
// nothing else.
func TestImpersonation(t *testing.T) {
	tokens, err := ParseTokens([]byte("help,helper,1\nroot,admin,2,system:masters\nview,viewer,3\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePolicy([]byte(kubePolicy + helpers))
	if err != nil {
		t.Fatal(err)
	}
	g := &Guard{Authenticator: &Authenticator{Tokens: func() Tokens { return tokens }}, Authorizer: p, Node: "n1",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(From(r.Context()).String())) })}
	const secrets, pods = "/api/v1/secrets", "/api/v1/pods"
	for _, c := range []struct {
		token, path string
		head        http.Header
		status      int
		want        string
	}{
		{"root", secrets, nil, 200, "admin (system:masters, system:authenticated)"},
		{"root", secrets, http.Header{asUser: {"viewer"}}, 403, `User \"viewer\" cannot list resource \"secrets\"`},
		{"root", pods, http.Header{asUser: {"viewer"}}, 200, "viewer (system:authenticated)"},
		{"root", pods, http.Header{asUser: {"x"}, asGroup: {"system:masters"}}, 200, "x (system:masters, system:authenticated)"},
		{"root", "/version", http.Header{asUser: {"system:anonymous"}}, 403, `User \"system:anonymous\" cannot get path`},
		{"root", "/version", http.Header{asUser: {"x"}, asGroup: {"system:unauthenticated"}}, 403, `User \"x\" cannot get path`},
		{"root", "/pods", http.Header{asUser: {"bob"}}, 200, "bob (system:authenticated)"},
		{"root", "/metrics", http.Header{asUser: {"bob"}}, 403, "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[metrics])"},
		{"root", "/metrics", http.Header{asUser: {"system:serviceaccount:mon:prom"}}, 200, "system:serviceaccount:mon:prom (system:serviceaccounts, system:serviceaccounts:mon, system:authenticated)"},
		{"help", pods, http.Header{asUser: {"viewer"}}, 200, "viewer (system:authenticated)"},
		{"help", pods, nil, 403, `User \"helper\" cannot list`},
		{"help", pods, http.Header{asUser: {"admin"}}, 403, `users \"admin\" is forbidden: User \"helper\" cannot impersonate resource \"users\"`},
		{"help", pods, http.Header{asUser: {"viewer"}, asGroup: {"system:masters"}}, 403, `groups \"system:masters\" is forbidden`},
		{"help", "/metrics", http.Header{asUser: {"viewer"}, asGroup: {"monitoring"}}, 200, "viewer (monitoring, system:authenticated)"},
		{"help", "/metrics", http.Header{asUser: {"system:serviceaccount:mon:prom"}}, 200, "system:serviceaccount:mon:prom"},
		{"view", pods, http.Header{asUser: {"tenant"}}, 403, "cannot impersonate"},
		{"view", pods, http.Header{asGroup: {"monitoring"}}, 400, "needs one name"},
		{"root", pods, http.Header{asUser: {"viewer", "tenant"}}, 400, "needs one name"},
		{"root", pods, http.Header{asUser: {"viewer"}, "Impersonate-Uid": {"7"}}, 400, "Impersonate-Uid: podd's users have a name and groups"},
		{"root", pods, http.Header{"Impersonate-Extra-Scopes": {"view"}}, 400, "nothing else"},
		{"no", pods, http.Header{asUser: {"viewer"}}, 401, "Unauthorized"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", c.path, nil)
		if c.head != nil {
			r.Header = c.head.Clone()
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		g.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s as %v with %q: %d %s, want %d %s", c.path, c.head, c.token, w.Code, w.Body, c.status, c.want)
		}
	}
}

// TestAs: on root's own socket nobody is taken for somebody who may less.
func TestAs(t *testing.T) {
	h := As(Root(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(From(r.Context()).String())) }))
	for header, want := range map[string]int{"": 200, asUser: 400, asGroup: 400, "Impersonate-Uid": 400} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/pods", nil)
		if header != "" {
			r.Header.Set(header, "x")
		}
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d %s", header, w.Code, w.Body)
		}
	}
}

// In a cluster a grant in a namespace is the cluster's affair, not the node's.
func TestProxied(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         Attributes
	}{
		{"GET", "/api/v1/namespaces/a/pods", Attributes{Verb: "get", Resource: "nodes", Name: "n1", Subresources: []string{"proxy"}}},
		{"GET", "/api/v1/namespaces/a/pods/x/exec", Attributes{Verb: "create", Resource: "nodes", Name: "n1", Subresources: []string{"proxy"}}},
		{"GET", "/version", Attributes{Verb: "get", Path: "/version"}},
		{"PATCH", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", Attributes{Verb: "patch", Resource: "pods", Namespace: "a", Name: "x", Subresources: []string{"ephemeralcontainers"}}},
	} {
		if diff := cmp.Diff(c.want, Of(httptest.NewRequest(c.method, c.path, nil), "n1").proxied("n1")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.method, c.path, diff)
		}
	}
	policy, err := ParsePolicy([]byte(kubePolicy))
	if err != nil {
		t.Fatal(err)
	}
	q := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods", nil)
	g := &Guard{Authenticator: &Authenticator{Anonymous: true}, Authorizer: policy, Node: "n1", OfCluster: true}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, q)
	if w.Code != 403 || !strings.Contains(w.Body.String(), "nodes/proxy") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	// Who may proxy to the node may for all that not add a container to its pods.
	proxy := Attributes{Verb: "patch", Resource: "nodes", Name: "n1", Subresources: []string{"proxy"}}
	g = &Guard{Authenticator: g.Authenticator, Authorizer: Writes{All{}}, Node: "n1", OfCluster: true}
	w = httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest("PATCH", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", nil))
	if w.Code != 403 || !allows(t, g.Authorizer, User{}, proxy) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	// Who asks what they may is told the same.
	look := Attributes{Verb: "list", Resource: "pods", Namespace: "a", Subresources: []string{""}}
	if may := (Proxied{onlyNodes{}, "n1"}); !allows(t, may, User{}, look) || allows(t, may, User{}, Attributes{Verb: "create", Resource: "pods", Subresources: []string{""}}) {
		t.Error("one who may proxy to the node is told something else")
	}
}

// onlyNodes allows all of node n1.
type onlyNodes struct{ All }

func (onlyNodes) Allows(_ context.Context, _ User, a Attributes) (bool, error) {
	return a.Resource == "nodes" && a.Name == "n1", nil
}

// asleep cannot tell.
type asleep struct{ All }

func (asleep) Allows(context.Context, User, Attributes) (bool, error) {
	return true, errors.New("the cluster is away: s3cret")
}

// Whom nobody can tell about is answered so, as by a kubelet, and not told why.
func TestGuardUndecided(t *testing.T) {
	g := &Guard{Authenticator: &Authenticator{Anonymous: true}, Authorizer: asleep{}, Node: "n1"}
	for _, c := range []struct{ path, as, want string }{
		{"/pods", "", "Authorization error (user=system:anonymous, verb=get, resource=nodes, subresource=pods,proxy)"},
		{"/pods", "bob", "Authorization error (user=system:anonymous, verb=impersonate, resource=users, subresource=)"},
		{"/api/v1/pods", "", `"message":"Authorization error (user=system:anonymous, verb=list, resource=pods, subresource=)"`},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", c.path, nil)
		if c.as != "" {
			r.Header.Set(asUser, c.as)
		}
		g.ServeHTTP(w, r)
		if w.Code != 500 || !strings.Contains(w.Body.String(), c.want) || strings.Contains(w.Body.String(), "s3cret") {
			t.Errorf("%s as %q: %d %s", c.path, c.as, w.Code, w.Body)
		}
	}
}
