package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/server/pki"
)

// guardPolicy permits the group "monitoring" to read /metrics, but not /pods.
const guardPolicy = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: [""], resources: [nodes/metrics], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: Group, name: monitoring}]}
`

// TestClientAccess_Configuration checks the status codes that each client gets, for several
// configurations of the kubelet API. podd must always accept certificates of its own authority. It must
// accept those of another authority only if the client CA file contains this authority. Without a token
// file, a request with a token is anonymous.
func TestClientAccess_Configuration(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own, configured, other := newAuthority(t), newAuthority(t), newAuthority(t) // configured is in the client CA file
	files := config.KubeletAPI{
		ClientCAFile: write("ca", configured.PEM()), PolicyFile: write("policy", []byte(guardPolicy)),
		TokenFile: write("tokens", []byte("abc,prom,1,monitoring\n")),
	}
	for name, c := range map[string]struct {
		api                                     config.KubeletAPI
		root, prom, token, untrusted, anonymous [2]int // expected status codes of each client for /metrics and /pods
	}{
		"default":                 {config.KubeletAPI{}, [2]int{200, 200}, [2]int{401, 401}, [2]int{401, 401}, [2]int{401, 401}, [2]int{401, 401}},
		"files":                   {files, [2]int{200, 200}, [2]int{200, 403}, [2]int{200, 403}, [2]int{401, 401}, [2]int{401, 401}},
		"anonymous":               {config.KubeletAPI{AllowAnonymous: true}, [2]int{200, 200}, [2]int{401, 401}, [2]int{403, 403}, [2]int{401, 401}, [2]int{403, 403}},
		"always allow":            {config.KubeletAPI{AlwaysAllow: true, TokenFile: files.TokenFile}, [2]int{200, 200}, [2]int{401, 401}, [2]int{200, 200}, [2]int{401, 401}, [2]int{401, 401}},
		"anonymous, always allow": {config.KubeletAPI{AllowAnonymous: true, AlwaysAllow: true}, [2]int{200, 200}, [2]int{401, 401}, [2]int{200, 200}, [2]int{401, 401}, [2]int{200, 200}},
	} {
		g := newGuard(t, c.api, own)
		for client, want := range map[*testClient][2]int{
			{name: "root", cert: newClientCertificate(t, own, "system:masters")}:        c.root,
			{name: "prom", cert: newClientCertificate(t, configured, "monitoring")}:     c.prom,
			{name: "token", token: "abc"}:                                               c.token,
			{name: "untrusted", cert: newClientCertificate(t, other, "system:masters")}: c.untrusted,
			{name: "anonymous"}: c.anonymous,
		} {
			if got := [2]int{client.status(g, "/metrics"), client.status(g, "/pods")}; got != want {
				t.Errorf("%s, client %s: got status %d of /metrics and /pods, want %d", name, client.name, got, want)
			}
		}
	}

	g := newGuard(t, files, own)
	oldClient, newClient := testClient{cert: newClientCertificate(t, configured, "monitoring")}, testClient{cert: newClientCertificate(t, other, "monitoring")}
	if a, b := oldClient.status(g, "/metrics"), newClient.status(g, "/metrics"); a != 200 || b != 401 {
		t.Errorf("before the client CA changed: got status %d for a certificate of the old CA and %d for one of the new CA, want 200 and 401", a, b)
	}
	write("ca", other.PEM())
	if a, b := oldClient.status(g, "/metrics"), newClient.status(g, "/metrics"); a != 401 || b != 200 {
		t.Errorf("after the client CA changed: got status %d for a certificate of the old CA and %d for one of the new CA, want 401 and 200", a, b)
	}
}

// TestClientAccess_Revocation checks that a certificate of podd's own authority is rejected as soon as
// podd has replaced the authority, which revokes all of its certificates. Certificates of the client CA
// must stay valid.
func TestClientAccess_Revocation(t *testing.T) {
	own, configured := newAuthority(t), newAuthority(t)
	ca := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(ca, configured.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, api := range map[string]config.KubeletAPI{"without --client-ca-file": {}, "with --client-ca-file": {ClientCAFile: ca}} {
		g := newGuard(t, api, own)
		before, other := testClient{cert: newClientCertificate(t, own, "system:masters")}, testClient{cert: newClientCertificate(t, configured, "system:masters")}
		if got := before.status(g, "/pods"); got != 200 {
			t.Fatalf("%s: before the revocation: got status %d, want 200", name, got)
		}
		wantOther := other.status(g, "/pods")
		if _, err := own.Replace(); err != nil {
			t.Fatal(err)
		}
		after := testClient{cert: newClientCertificate(t, own, "system:masters")}
		if got := before.status(g, "/pods"); got != 401 {
			t.Errorf("%s: revoked certificate: got status %d, want 401", name, got)
		}
		if got := after.status(g, "/pods"); got != 200 {
			t.Errorf("%s: certificate after the revocation: got status %d, want 200", name, got)
		}
		if got := other.status(g, "/pods"); got != wantOther {
			t.Errorf("%s: certificate of the client CA: got status %d, want %d as before the revocation", name, got, wantOther)
		}
	}
}

// newGuard returns a guard of node n1, which is not in a cluster. Permitted requests get status 200,
// because the guarded handler does nothing.
func newGuard(t *testing.T, c config.KubeletAPI, own *pki.Authority) http.Handler {
	t.Helper()
	a, err := newClientAccess(c, nil, own, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a.guard("n1", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// A testClient is a client with a certificate, a token or neither.
type testClient struct {
	name  string
	cert  *x509.Certificate
	token string
}

// status returns the status code of a GET request.
func (c *testClient) status(h http.Handler, path string) int {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	if c.cert != nil {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c.cert}}
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	h.ServeHTTP(w, r)
	return w.Code
}

// newAuthority returns a new certificate authority.
func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newClientCertificate returns a certificate of a user in the group, issued by ca.
func newClientCertificate(t *testing.T, ca *pki.Authority, group string) *x509.Certificate {
	t.Helper()
	cert, key, err := ca.SignClient("user", []string{group}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}
