package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"podd/server/pki"
)

// client returns the TLS state of a connection with a client that presents a new
// certificate that the authority a has signed.
func client(t *testing.T, a *pki.Authority, user string, life time.Duration, groups ...string) *tls.ConnectionState {
	t.Helper()
	cert, key, err := a.SignClient(user, groups, life)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Leaf}}
}

func authority(t *testing.T) (*pki.Authority, *x509.CertPool) {
	t.Helper()
	a, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := a.RootPool(nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, pool
}

func TestAuthenticator(t *testing.T) {
	ours, pool := authority(t)
	foreign, _ := authority(t)
	tokens, err := ParseTokens([]byte("# users\nabc,prom,1,\"monitoring,ops\"\nxyz,bob,2\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		anonymous     bool
		state         *tls.ConnectionState
		authorization string
		want          string // "" if authentication must fail
	}{
		{"a certificate", false, client(t, ours, "alice", time.Hour, "a", "b"), "", "alice (a, b, system:authenticated)"},
		{"a certificate of another authority", false, client(t, foreign, "alice", time.Hour), "", ""},
		{"an expired certificate", false, client(t, ours, "alice", -time.Minute), "", ""},
		{"a certificate without a name", false, client(t, ours, "", time.Hour, "g"), "", ""},
		{"a token", false, nil, "Bearer abc", "prom (monitoring, ops, system:authenticated)"},
		{"a token with the scheme in lower case", false, nil, "bearer xyz", "bob (system:authenticated)"},
		{"an unknown token", false, nil, "Bearer abcd", ""},
		{"an empty token", false, nil, "Bearer ", ""},
		{"another scheme", false, nil, "Basic YTpi", ""},
		{"no credential", false, nil, "", ""},
		{"no credential, anonymous allowed", true, nil, "", "system:anonymous (system:unauthenticated)"},
		{"an unknown token, anonymous allowed", true, nil, "Bearer no", ""},
		{"a foreign certificate, anonymous allowed", true, client(t, foreign, "alice", time.Hour), "", ""},
		{"a foreign certificate and a token", false, client(t, foreign, "alice", time.Hour), "Bearer xyz", "bob (system:authenticated)"},
		{"a token that Review accepts", true, nil, "Bearer far", "far (there, system:authenticated)"},
		{"a token without a user name", true, nil, "Bearer nameless", ""},
	} {
		a := &Authenticator{CAs: func() *x509.CertPool { return pool }, Tokens: func() Tokens { return tokens }, AllowsAnonymous: c.anonymous}
		a.ReviewToken = func(_ context.Context, token string) (User, bool) {
			reviewed := map[string]User{"far": {Name: "far", Groups: []string{"there"}}, "abc": {Name: "other"}, "nameless": {}}
			u, ok := reviewed[token]
			return u, ok
		}
		r := httptest.NewRequest("GET", "/pods", nil)
		r.TLS = c.state
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		u, ok := a.authenticate(r)
		if ok != (c.want != "") || ok && u.String() != c.want {
			t.Errorf("%s: got user %q, authenticated %t; want user %q (\"\" if authentication must fail)", c.name, u, ok, c.want)
		}
	}
	r := httptest.NewRequest("GET", "/pods", nil)
	r.TLS = client(t, ours, "alice", time.Hour)
	if _, ok := (&Authenticator{}).authenticate(r); ok {
		t.Error("certificate with the zero Authenticator: got a user, want none")
	}
	r = httptest.NewRequest("GET", "/pods", nil)
	r.Header.Set("Authorization", "Bearer abc")
	if u, ok := (&Authenticator{AllowsAnonymous: true}).authenticate(r); !ok || u.Name != anonymousUser {
		t.Errorf("a token that nothing authenticates: got user %q, authenticated %t; want user %s, true", u, ok, anonymousUser)
	}
}

// allows returns the decision of the Authorizer by. If by returns an error, the test fails.
func allows(t *testing.T, by Authorizer, u User, a Attributes) bool {
	t.Helper()
	may, err := by.Allows(t.Context(), u, a)
	if err != nil {
		t.Error(err)
	}
	return may
}

func TestParseTokens(t *testing.T) {
	for text, want := range map[string]string{
		"s3cret,bob":             "line 1: must be token,user,uid",
		"ok,a,1\ns3cret,,1":      "line 2: must be token,user,uid",
		"s3cret,a,1\ns3cret,b,2": "line 2: duplicate token",
		`s3cret,a,1,"x`:          "line 1",
	} {
		_, err := ParseTokens([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got error %v, want %q in it", text, err, want)
		}
	}
}

func TestRequestAttributes(t *testing.T) {
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/pods", "get pods proxy"},
		{"GET", "/pods/", "get pods proxy"},
		{"GET", "/podsx", "get proxy"},
		{"GET", "/runningpods/", "get pods proxy"},
		{"GET", "/healthz/syncloop", "get healthz proxy"},
		{"GET", "/spec/", "get spec proxy"},
		{"GET", "/stats/summary", "get stats"},
		{"POST", "/stats/summary", "create stats"},
		{"GET", "/metrics/cadvisor", "get metrics"},
		{"GET", "/logs/syslog", "get log"},
		{"GET", "/configz", "get configz proxy"},
		{"GET", "/flagz", "get configz"},
		{"GET", "/statusz", "get statusz"},
		{"POST", "/checkpoint/a/b/c", "create checkpoint"},
		{"GET", "/containerLogs/a/b/c", "get proxy"},
		{"GET", "/exec/a/b/c", "create proxy"},
		{"POST", "/exec/a/b/c", "create proxy"},
		{"GET", "/attach/a/b/c", "create proxy"},
		{"GET", "/portForward/a/b", "create proxy"},
		{"POST", "/run/a/b/c", "create proxy"},
		{"PUT", "/debug/flags/v", "update proxy"},
		{"HEAD", "/exec/a/b/c", " proxy"},
		{"BREW", "/", " proxy"},
		{"GET", "/readyz", "get healthz proxy"},
		{"GET", "/api/v1/nodes/n1/proxy/stats/summary", "get stats proxy"},
		{"GET", "/api/v1/nodes/n1/proxy/pods", "get pods proxy"},
		{"GET", "/api/v1/nodes/n1/proxy/logs/", "get log proxy"},
		{"GET", "/api/v1/nodes/n1/proxy/exec/a/b/c", "create proxy"},
		{"POST", "/api/v1/nodes/n1/proxy/run/a/b/c", "create proxy"},
		{"GET", "/api/v1/nodes/n1/proxy", "get proxy"},
	} {
		a := RequestAttributes(httptest.NewRequest(c.method, c.path, nil), "n1")
		if a.Resource != "nodes" || a.Name != "n1" {
			t.Errorf("%s: got resource %q, name %q; want nodes, n1", c.path, a.Resource, a.Name)
		}
		if got := a.Verb + " " + strings.Join(a.Subresources, " "); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

const policy = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scrape}
rules:
- {apiGroups: [""], resources: [nodes/metrics, nodes/stats], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: look}
rules:
- {apiGroups: [""], resources: ["nodes/proxy"], verbs: [get]}
- {apiGroups: [apps], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: here}
rules:
- {apiGroups: [""], resources: ["*"], verbs: ["*"], resourceNames: [n1]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scrape}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scrape}
subjects:
- {kind: Group, name: monitoring}
- {kind: ServiceAccount, name: prom, namespace: mon}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: look}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: look}
subjects: [{kind: User, name: bob}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: here}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: here}
subjects: [{kind: User, name: carol}]
`

func TestPolicy(t *testing.T) {
	p, err := ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	bob, prom := User{Name: "bob"}, User{Name: "system:serviceaccount:mon:prom"}
	group, carol := User{Name: "x", Groups: []string{"monitoring"}}, User{Name: "carol"}
	for _, c := range []struct {
		user         User
		method, path string
		node         string
		want         bool
	}{
		{group, "GET", "/metrics", "n1", true},
		{group, "GET", "/metrics/resource", "n1", true},
		{group, "POST", "/stats/summary", "n1", false},
		{group, "GET", "/pods", "n1", false},
		{prom, "GET", "/stats/summary", "n1", true},
		{bob, "GET", "/pods", "n1", true},
		{bob, "GET", "/containerLogs/a/b/c", "n1", true},
		{bob, "GET", "/metrics", "n1", false},
		{bob, "GET", "/exec/a/b/c", "n1", false},
		{bob, "HEAD", "/pods", "n1", false},
		{bob, "GET", "/api/v1/nodes/n1/proxy/metrics", "n1", true},
		{bob, "GET", "/api/v1/nodes/n1/proxy/exec/a/b/c", "n1", false},
		{bob, "GET", "/api/v1/nodes/n1/proxy/checkpoint/a/b/c", "n1", false},
		{bob, "GET", "/api/v1/nodes/n1/proxy/../../pods", "n1", false},
		{group, "GET", "/api/v1/nodes/n1/proxy/stats/summary", "n1", true},
		{group, "GET", "/api/v1/nodes/n1/proxy/pods", "n1", false},
		{carol, "GET", "/api/v1/nodes/n2/proxy/pods", "n1", false},
		{carol, "POST", "/exec/a/b/c", "n1", true},
		{carol, "POST", "/exec/a/b/c", "n2", false},
		{RootUser(), "POST", "/exec/a/b/c", "n1", true},
		{User{Name: "eve"}, "GET", "/healthz", "n1", false},
	} {
		if got := allows(t, p, c.user, RequestAttributes(httptest.NewRequest(c.method, c.path, nil), c.node)); got != c.want {
			t.Errorf("%s %s %s on %s: got %t, want %t", c.user, c.method, c.path, c.node, got, c.want)
		}
	}
	if allows(t, Policy{}, bob, Attributes{Verb: "get", Resource: "nodes", Subresources: []string{"pods"}}) {
		t.Error("Allows of the zero Policy: got true, want false")
	}
}

func TestParsePolicy_Errors(t *testing.T) {
	const head = "apiVersion: rbac.authorization.k8s.io/v1\n"
	for text, want := range map[string]string{
		"kind: ClusterRole\n":                                                   `document 1: apiVersion ""`,
		head + "kind: Roll\n":                                                   `document 1: kind "Roll"`,
		head + "kind: Role\nmetadata: {name: x}\n":                              "metadata.namespace is missing",
		head + "kind: RoleBinding\nmetadata: {name: x}\n":                       "metadata.namespace is missing",
		head + "kind: ClusterRole\nrulez: []\n":                                 "rulez",
		head + "kind: ClusterRole\naggregationRule: {}\n":                       "aggregationRule",
		head + "kind: ClusterRoleBinding\nroleRef: {name: x}\n":                 `role not found:  "x"`,
		policy + "---\n" + head + "kind: ClusterRole\nmetadata: {name: look}\n": `"look" is defined twice`,
		"{": "document 1",
	} {
		if _, err := ParsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q in it", text, err, want)
		}
	}
	if p, err := ParsePolicy([]byte("\n---\n# nothing\n")); err != nil || len(p.grants) != 0 {
		t.Errorf("ParsePolicy of a text without a document: got %v, error %v; want an empty Policy", p, err)
	}
}

func TestGuard(t *testing.T) {
	_, pool := authority(t)
	tokens, err := ParseTokens([]byte("abc,prom,1,monitoring\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	var passed []string
	g := &Guard{
		Authenticator: &Authenticator{CAs: func() *x509.CertPool { return pool }, Tokens: func() Tokens { return tokens }},
		Authorizer:    p, Node: "n1",
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = append(passed, r.URL.Path) }),
	}
	for _, c := range []struct {
		token, path string
		status      int
	}{{"abc", "/metrics", 200}, {"abc", "/pods", 403}, {"no", "/metrics", 401}, {"", "/metrics", 401}} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", c.path, nil)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		g.ServeHTTP(w, r)
		if w.Code != c.status || (w.Header().Get("Connection") == "close") != (c.status != 200) {
			t.Errorf("%s with %q: got %d %s, want %d", c.path, c.token, w.Code, w.Body, c.status)
		}
	}
	if !slices.Equal(passed, []string{"/metrics"}) {
		t.Errorf("requests passed to the handler: got %q, want only /metrics", passed)
	}
}
