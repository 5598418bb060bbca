package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
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

func TestPolicy_KubernetesAPI(t *testing.T) {
	p, err := ParsePolicy([]byte(kubePolicy))
	if err != nil {
		t.Fatal(err)
	}
	known := func(name string) User { return User{Name: name, Groups: []string{authenticatedGroup}} }
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
		{User{Name: anonymousUser, Groups: []string{unauthenticatedGroup}}, "GET", "/version", false},
		{known("eve"), "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true},
		{known("eve"), "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", true},
		{known("eve"), "GET", "/api/v1/pods", false},
		{known("viewer"), "GET", "/api/v1/pods?watch=1", true},
		{known("viewer"), "GET", "/api/v1/namespaces/a/pods/x/log", true},
		{known("viewer"), "GET", "/api/v1/namespaces/a/pods/x/exec", false},
		{known("viewer"), "DELETE", "/api/v1/namespaces/a/pods/x", false},
		{known("viewer"), "GET", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", false},
		{known("tenant"), "PATCH", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", false}, // rejected, although tenant may exec
		{RootUser(), "PATCH", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", true},
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
		{RootUser(), "DELETE", "/api/v1/pods", true},
	} {
		if got := allows(t, p, c.user, RequestAttributes(httptest.NewRequest(c.method, c.path, nil), "n1")); got != c.want {
			t.Errorf("%s %s %s: got %t, want %t", c.user, c.method, c.path, got, c.want)
		}
	}
	if !allows(t, p, known("viewer"), Attributes{Verb: "get", Path: "/stuff/here"}) || allows(t, p, known("viewer"), Attributes{Verb: "get", Path: "/stuff"}) {
		t.Error("rule with the path /stuff/*: got no permission for /stuff/here, or permission for /stuff; want only the first")
	}
	in, _ := p.Rules(known("tenant"), "a")
	out, _ := p.Rules(known("tenant"), "c")
	if len(in) != len(defaultGrants)+2 || len(out) != len(defaultGrants) {
		t.Errorf("rules of tenant: got %d in namespace a, %d in namespace c; want %d, %d", len(in), len(out), len(defaultGrants)+2, len(defaultGrants))
	}
}

func TestGuard_KubernetesAPI(t *testing.T) {
	tokens, err := ParseTokens([]byte("abc,prom,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := &Guard{Authenticator: &Authenticator{Tokens: func() Tokens { return tokens }}, Authorizer: Policy{}, Node: "n1",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(UserFrom(r.Context()).String())) })}
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
			t.Errorf("%s with %q: got %d %s, want %d %s", c.path, c.token, w.Code, w.Body, c.status, c.want)
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

// TestImpersonation checks that a request with impersonation has the permissions of the
// impersonated user only.
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
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(UserFrom(r.Context()).String())) })}
	const secrets, pods = "/api/v1/secrets", "/api/v1/pods"
	for _, c := range []struct {
		token, path string
		head        http.Header
		status      int
		want        string
	}{
		{"root", secrets, nil, 200, "admin (system:masters, system:authenticated)"},
		{"root", secrets, http.Header{userHeader: {"viewer"}}, 403, `User \"viewer\" cannot list resource \"secrets\"`},
		{"root", pods, http.Header{userHeader: {"viewer"}}, 200, "viewer (system:authenticated)"},
		{"root", pods, http.Header{userHeader: {"x"}, groupHeader: {"system:masters"}}, 200, "x (system:masters, system:authenticated)"},
		{"root", "/version", http.Header{userHeader: {"system:anonymous"}}, 403, `User \"system:anonymous\" cannot get path`},
		{"root", "/version", http.Header{userHeader: {"x"}, groupHeader: {"system:unauthenticated"}}, 403, `User \"x\" cannot get path`},
		{"root", "/pods", http.Header{userHeader: {"bob"}}, 200, "bob (system:authenticated)"},
		{"root", "/metrics", http.Header{userHeader: {"bob"}}, 403, "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[metrics])"},
		{"root", "/metrics", http.Header{userHeader: {"system:serviceaccount:mon:prom"}}, 200, "system:serviceaccount:mon:prom (system:serviceaccounts, system:serviceaccounts:mon, system:authenticated)"},
		{"help", pods, http.Header{userHeader: {"viewer"}}, 200, "viewer (system:authenticated)"},
		{"help", pods, nil, 403, `User \"helper\" cannot list`},
		{"help", pods, http.Header{userHeader: {"admin"}}, 403, `users \"admin\" is forbidden: User \"helper\" cannot impersonate resource \"users\"`},
		{"help", pods, http.Header{userHeader: {"viewer"}, groupHeader: {"system:masters"}}, 403, `groups \"system:masters\" is forbidden`},
		{"help", "/metrics", http.Header{userHeader: {"viewer"}, groupHeader: {"monitoring"}}, 200, "viewer (monitoring, system:authenticated)"},
		{"help", "/metrics", http.Header{userHeader: {"system:serviceaccount:mon:prom"}}, 200, "system:serviceaccount:mon:prom"},
		{"view", pods, http.Header{userHeader: {"tenant"}}, 403, "cannot impersonate"},
		{"view", pods, http.Header{groupHeader: {"monitoring"}}, 400, "needs exactly one user name"},
		{"root", pods, http.Header{userHeader: {"viewer", "tenant"}}, 400, "needs exactly one user name"},
		{"root", pods, http.Header{userHeader: {"viewer"}, "Impersonate-Uid": {"7"}}, 400, "Impersonate-Uid: unsupported header"},
		{"root", pods, http.Header{"Impersonate-Extra-Scopes": {"view"}}, 400, "unsupported header"},
		{"no", pods, http.Header{userHeader: {"viewer"}}, 401, "Unauthorized"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", c.path, nil)
		if c.head != nil {
			r.Header = c.head.Clone()
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		g.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s as %v with %q: got %d %s, want %d %s", c.path, c.head, c.token, w.Code, w.Body, c.status, c.want)
		}
	}
}

// TestServeAs checks that root's own socket rejects impersonation.
func TestServeAs(t *testing.T) {
	h := ServeAs(RootUser(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(UserFrom(r.Context()).String())) }))
	for header, want := range map[string]int{"": 200, userHeader: 400, groupHeader: 400, "Impersonate-Uid": 400} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/pods", nil)
		if header != "" {
			r.Header.Set(header, "x")
		}
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("header %q: got %d %s, want %d", header, w.Code, w.Body, want)
		}
	}
}

// TestProxied checks that, in a cluster, Guard ignores grants in a namespace.
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
		if diff := cmp.Diff(c.want, RequestAttributes(httptest.NewRequest(c.method, c.path, nil), "n1").proxyAttributes("n1")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.method, c.path, diff)
		}
	}
	policy, err := ParsePolicy([]byte(kubePolicy))
	if err != nil {
		t.Fatal(err)
	}
	q := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods", nil)
	g := &Guard{Authenticator: &Authenticator{AllowsAnonymous: true}, Authorizer: policy, Node: "n1", InCluster: true}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, q)
	if w.Code != 403 || !strings.Contains(w.Body.String(), "nodes/proxy") {
		t.Errorf("response: got %d %s, want 403 and nodes/proxy in it", w.Code, w.Body)
	}
	// Permission to proxy to the node does not include adding a container to its
	// pods.
	proxy := Attributes{Verb: "patch", Resource: "nodes", Name: "n1", Subresources: []string{"proxy"}}
	g = &Guard{Authenticator: g.Authenticator, Authorizer: WriteAuthorizer{AllowAll{}}, Node: "n1", InCluster: true}
	w = httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest("PATCH", "/api/v1/namespaces/a/pods/x/ephemeralcontainers", nil))
	if w.Code != 403 || !allows(t, g.Authorizer, User{}, proxy) {
		t.Errorf("patch of a pod: got %d %s, want 403 although the user may proxy to the node", w.Code, w.Body)
	}
	// Access reviews report the permissions that Guard enforces.
	look := Attributes{Verb: "list", Resource: "pods", Namespace: "a", Subresources: []string{""}}
	if may := (ProxyAuthorizer{onlyNodes{}, "n1"}); !allows(t, may, User{}, look) || allows(t, may, User{}, Attributes{Verb: "create", Resource: "pods", Subresources: []string{""}}) {
		t.Error("user who may proxy to the node: got no permission to list pods, or the permission to create pods; want only the permission to list, as from Guard")
	}
}

// onlyNodes allows every request for node n1.
type onlyNodes struct{ AllowAll }

func (onlyNodes) Allows(_ context.Context, _ User, a Attributes) (bool, error) {
	return a.Resource == "nodes" && a.Name == "n1", nil
}

// failing is an Authorizer whose Allows always returns an error.
type failing struct{ AllowAll }

func (failing) Allows(context.Context, User, Attributes) (bool, error) {
	return true, errors.New("the cluster is unreachable: s3cret")
}

// TestGuard_AuthorizerFails checks that, if the Authorizer fails, the response has the kubelet's
// text and omits the cause.
func TestGuard_AuthorizerFails(t *testing.T) {
	g := &Guard{Authenticator: &Authenticator{AllowsAnonymous: true}, Authorizer: failing{}, Node: "n1"}
	for _, c := range []struct{ path, as, want string }{
		{"/pods", "", "Authorization error (user=system:anonymous, verb=get, resource=nodes, subresource=pods,proxy)"},
		{"/pods", "bob", "Authorization error (user=system:anonymous, verb=impersonate, resource=users, subresource=)"},
		{"/api/v1/pods", "", `"message":"Authorization error (user=system:anonymous, verb=list, resource=pods, subresource=)"`},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", c.path, nil)
		if c.as != "" {
			r.Header.Set(userHeader, c.as)
		}
		g.ServeHTTP(w, r)
		if w.Code != 500 || !strings.Contains(w.Body.String(), c.want) || strings.Contains(w.Body.String(), "s3cret") {
			t.Errorf("%s as %q: got %d %s, want 500 %s", c.path, c.as, w.Code, w.Body, c.want)
		}
	}
}

// boundToBob returns a policy that grants rules, which are YAML, to the user bob.
func boundToBob(t *testing.T, rules string) Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [` + rules + `]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: User, name: bob}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProxied_MayReadSecret checks that, on a node of a cluster, permission to get nodes/proxy is
// not sufficient to read the data of Secrets.
func TestProxied_MayReadSecret(t *testing.T) {
	bob := User{Name: "bob", Groups: []string{authenticatedGroup}}
	for _, c := range []struct {
		name     string
		inner    Authorizer
		user     User
		all, own bool // wanted results for all Secrets of the namespace and for the Secret "own"
	}{
		{"get nodes/proxy", boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}`), bob, false, false},
		{"list secrets", boundToBob(t, `{apiGroups: [""], resources: [secrets], verbs: [list, watch]}`), bob, false, false},
		{"create nodes/proxy", boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [create]}`), bob, true, true},
		{"create nodes/proxy of another node", boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [create], resourceNames: [n2]}`), bob, false, false},
		{"get secrets", boundToBob(t, `{apiGroups: [""], resources: [secrets], verbs: [get]}`), bob, true, true},
		{"get one Secret", boundToBob(t, `{apiGroups: [""], resources: [secrets], verbs: [get], resourceNames: [own]}`), bob, false, true},
		{"an authorizer that fails", failing{}, bob, false, false},
		{"root, while the cluster is unreachable", failing{}, RootUser(), true, true},
	} {
		p := ProxyAuthorizer{WriteAuthorizer{c.inner}, "n1"}
		if all, own := p.MayReadSecret(t.Context(), c.user, "a", ""), p.MayReadSecret(t.Context(), c.user, "a", "own"); all != c.all || own != c.own {
			t.Errorf("%s: MayReadSecret of all Secrets and of the Secret \"own\": got %t and %t, want %t and %t", c.name, all, own, c.all, c.own)
		}
	}
}

// TestProxied_AllowsSecret checks that an access review allows the reading of Secrets only if Guard
// allows the request and the response contains the data.
func TestProxied_AllowsSecret(t *testing.T) {
	bob := User{Name: "bob", Groups: []string{authenticatedGroup}}
	for _, c := range []struct {
		name     string
		inner    Authorizer
		user     User
		all, own bool // wanted results for all Secrets of the namespace and for the Secret "own"
	}{
		{"no permission", Policy{}, bob, false, false},
		{"get nodes/proxy", boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}`), bob, false, false},
		{"create nodes/proxy", boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [create]}`), bob, false, false},
		{"get and create nodes/proxy", boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get, create]}`), bob, true, true},
		{"get secrets", boundToBob(t, `{apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}`), bob, false, false},
		{"get nodes/proxy and get secrets", boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy, secrets], verbs: [get]}`), bob, true, true},
		{"get nodes/proxy and get one Secret", boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}, {apiGroups: [""], resources: [secrets], verbs: [get], resourceNames: [own]}`), bob, false, true},
		{"root", Policy{}, RootUser(), true, true},
	} {
		p := ProxyAuthorizer{WriteAuthorizer{c.inner}, "n1"}
		for _, verb := range readVerbs {
			for name, want := range map[string]bool{"": c.all, "own": c.own} {
				a := Attributes{Verb: verb, Resource: "secrets", Namespace: "a", Name: name, Subresources: []string{""}}
				if got := allows(t, p, c.user, a); got != want {
					t.Errorf("%s: %s secrets %q: got %t, want %t", c.name, verb, name, got, want)
				}
			}
		}
		a := Attributes{Verb: "get", Resource: "*", Namespace: "a", Subresources: []string{"*"}}
		if got := allows(t, p, c.user, a); got != c.all {
			t.Errorf("%s: get every resource: got %t, want %t", c.name, got, c.all)
		}
	}
}

// TestProxied_Rules checks that, in a cluster, the rules of a user include exactly the requests
// that access reviews allow. The test ignores rules that a policy grants in one namespace, and
// rules for other resources.
func TestProxied_Rules(t *testing.T) {
	for name, inner := range map[string]Authorizer{
		"no permission":                   Policy{},
		"every request":                   AllowAll{},
		"get pods and secrets":            boundToBob(t, `{apiGroups: [""], resources: [pods, secrets], verbs: [get, list, watch]}`),
		"get nodes/proxy":                 boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}`),
		"get nodes/proxy of another node": boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get], resourceNames: [n2]}`),
		"create nodes/proxy":              boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [create]}`),
		"get and create nodes/proxy":      boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get, create]}`),
		"get nodes/proxy and secrets":     boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy, secrets], verbs: [get]}`),
		"get nodes/proxy, list secrets":   boundToBob(t, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}, {apiGroups: [""], resources: [secrets], verbs: [list]}`),
		"impersonate":                     boundToBob(t, `{apiGroups: [""], resources: [users], verbs: [impersonate]}`),
	} {
		for _, forwarded := range []bool{false, true} {
			p, bob := ProxyAuthorizer{WriteAuthorizer{inner}, "n1"}, User{Name: "bob", Groups: []string{authenticatedGroup}, IsForwarded: forwarded}
			rules, err := p.Rules(bob, "a")
			if err != nil {
				t.Fatal(err)
			}
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "impersonate"} {
				for _, resource := range []string{"pods", "pods/log", "pods/exec", "pods/ephemeralcontainers", "secrets", "configmaps", "nodes", "users"} {
					resource, part, _ := strings.Cut(resource, "/")
					a := Attributes{Verb: verb, Resource: resource, Namespace: "a", Subresources: []string{part}}
					isServed := part == "exec" && verb == "create" || part == "log" && verb == "get" ||
						part == "" && resource != "users" && slices.Contains(readVerbs, verb) || resource == "users" && verb == "impersonate"
					listed, allowed := anyCovers(rules, a), allows(t, p, bob, a)
					if listed && !allowed || isServed && allowed && !listed {
						t.Errorf("%s, forwarded %t: %s %s/%s: Rules include the request: %t, Allows: %t; want equal results", name, forwarded, verb, resource, part, listed, allowed)
					}
				}
			}
			if a := (Attributes{Verb: "get", Path: "/version"}); anyCovers(rules, a) != allows(t, p, bob, a) {
				t.Errorf("%s: /version: got %t from Rules, want %t", name, anyCovers(rules, a), allows(t, p, bob, a))
			}
		}
	}
}

// TestProxied_KubeletAPI checks that an access review of a subresource of nodes, such as
// nodes/metrics, has the result that Guard has for the paths of this subresource in the kubelet's
// API. Permission for nodes/proxy is neither sufficient nor necessary for a path such as /metrics.
func TestProxied_KubeletAPI(t *testing.T) {
	tokens, err := ParseTokens([]byte("bob,bob,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, granted := range []string{"metrics", "stats", "log", "checkpoint", "statusz", "configz", "pods", "healthz", "spec", "proxy"} {
		inner := boundToBob(t, `{apiGroups: [""], resources: [nodes/`+granted+`], verbs: [get, create], resourceNames: [n1]}`)
		g := &Guard{Authenticator: &Authenticator{Tokens: func() Tokens { return tokens }}, Authorizer: inner, Node: "n1", InCluster: true,
			Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		bob := User{Name: "bob", UID: "1", Groups: []string{authenticatedGroup}}
		reviewer := ProxyAuthorizer{inner, "n1"}
		rules, err := reviewer.Rules(bob, "default")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			verb, subresource string
			paths             []string
		}{
			{"get", "metrics", []string{"/metrics", "/metrics/cadvisor"}},
			{"get", "stats", []string{"/stats/summary"}},
			{"get", "log", []string{"/logs/messages"}},
			{"create", "checkpoint", []string{"/checkpoint/a/x/main"}},
			{"get", "statusz", []string{"/statusz"}},
			{"get", "configz", []string{"/configz", "/flagz"}},
			{"get", "pods", []string{"/pods", "/runningpods/"}},
			{"get", "healthz", []string{"/healthz", "/livez"}},
			{"get", "spec", []string{"/spec/"}},
			{"get", "proxy", []string{"/api/v1/nodes/n1/proxy/metrics"}},
		} {
			want := true
			for _, path := range c.paths {
				r := httptest.NewRequest(map[string]string{"get": "GET", "create": "POST"}[c.verb], path, nil)
				r.Header.Set("Authorization", "Bearer bob")
				w := httptest.NewRecorder()
				g.ServeHTTP(w, r)
				want = want && w.Code == 200
			}
			for _, name := range []string{"", "n1"} {
				a := Attributes{Verb: c.verb, Resource: "nodes", Namespace: "default", Name: name, Subresources: []string{c.subresource}}
				if got := allows(t, reviewer, bob, a); got != want {
					t.Errorf("user with nodes/%s: %s nodes/%s %q: Allows: got %t, want %t, the decision of Guard for %q", granted, c.verb, c.subresource, name, got, want, c.paths)
				}
				if got := anyCovers(rules, a); got != want && (want || c.subresource != "proxy") {
					t.Errorf("user with nodes/%s: %s nodes/%s %q: Rules: got %t, want %t", granted, c.verb, c.subresource, name, got, want)
				}
			}
			other := Attributes{Verb: c.verb, Resource: "nodes", Name: "n2", Subresources: []string{c.subresource}}
			if c.subresource != "proxy" && allows(t, reviewer, bob, other) {
				t.Errorf("user with nodes/%s of n1: %s nodes/%s n2: got true, want false", granted, c.verb, c.subresource)
			}
		}
	}
}

// TestGuard_ForwardedWrite checks that Guard rejects a forwarded request that needs root's
// credential. Guard cannot check whether the user who sent the request is root, because a forwarded
// request has only the credential of the API server. Access reviews must have the same result.
func TestGuard_ForwardedWrite(t *testing.T) {
	tokens, err := ParseTokens([]byte("api,kube-apiserver-kubelet-client,1,system:masters\n"))
	if err != nil {
		t.Fatal(err)
	}
	var user User // user of the last request
	g := &Guard{Authenticator: &Authenticator{Tokens: func() Tokens { return tokens }}, Authorizer: WriteAuthorizer{AllowAll{}}, Node: "n1", InCluster: true,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { user = UserFrom(r.Context()) })}
	const pods = "/api/v1/namespaces/a/pods"
	for _, c := range []struct {
		method, path string
		header       http.Header
		want         int
	}{
		{"PATCH", pods + "/x/ephemeralcontainers", http.Header{"X-Forwarded-For": {"192.0.2.7"}}, 403},
		{"PATCH", pods + "/x/ephemeralcontainers", http.Header{"X-Forwarded-For": {""}}, 403},
		{"GET", pods, http.Header{"X-Forwarded-For": {"192.0.2.7"}}, 200},
		{"POST", "/exec/a/x/main", http.Header{"X-Forwarded-For": {"192.0.2.7"}}, 200},
		{"PATCH", pods + "/x/ephemeralcontainers", http.Header{}, 200},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, nil)
		r.Header = c.header
		r.Header.Set("Authorization", "Bearer api")
		if g.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s %s %v: got %d %s, want %d", c.method, c.path, c.header, w.Code, w.Body, c.want)
		}
	}

	reviewer := ProxyAuthorizer{g.Authorizer, "n1"}
	for _, forwarded := range []bool{false, true} {
		r := httptest.NewRequest("GET", pods, nil)
		r.Header.Set("Authorization", "Bearer api")
		if forwarded {
			r.Header.Set("X-Forwarded-For", "192.0.2.7")
		}
		g.ServeHTTP(httptest.NewRecorder(), r)
		rules, err := reviewer.Rules(user, "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			verb, resource, part string
			open                 bool // whether the request is allowed even if it is forwarded
		}{
			{"get", "pods", "", true},
			{"watch", "nodes", "", true},
			{"get", "pods", "log", true},
			{"create", "pods", "exec", true},
			{"create", "pods", "", false},
			{"delete", "configmaps", "", false},
			{"patch", "pods", "ephemeralcontainers", false},
			{"get", "secrets", "", false},
			{"list", "secrets", "", false},
			{"get", "*", "", false},
			{"*", "*", "*", false},
		} {
			a := Attributes{Verb: c.verb, Resource: c.resource, Namespace: "a", Subresources: []string{c.part}}
			want := c.open || !forwarded
			if got := allows(t, reviewer, user, a); got != want {
				t.Errorf("forwarded %t: %+v: the access review allows the request: got %t, want %t", forwarded, a, got, want)
			}
			if got := anyCovers(rules, a); got != want {
				t.Errorf("forwarded %t: %+v: the rules cover the request: got %t, want %t", forwarded, a, got, want)
			}
		}
	}
}
