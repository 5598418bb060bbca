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

const guardPolicy = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: [""], resources: [nodes/metrics], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: Group, name: monitoring}]}
`

// TestClientAccess_Configuration checks which clients the configured files and switches
// admit. podd's own authority is always accepted. A client CA is accepted only while it is
// in its file. Without a token file, a request with a token is anonymous.
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
	own, given, other := authority(t), authority(t), authority(t)
	files := config.KubeletAPI{
		ClientCAFile: write("ca", given.PEM()), PolicyFile: write("policy", []byte(guardPolicy)),
		TokenFile: write("tokens", []byte("abc,prom,1,monitoring\n")),
	}
	for name, c := range map[string]struct {
		api                                     config.KubeletAPI
		root, prom, token, untrusted, anonymous [2]int // wanted status codes of each client for /metrics and /pods
	}{
		"default":                 {config.KubeletAPI{}, [2]int{200, 200}, [2]int{401, 401}, [2]int{401, 401}, [2]int{401, 401}, [2]int{401, 401}},
		"files":                   {files, [2]int{200, 200}, [2]int{200, 403}, [2]int{200, 403}, [2]int{401, 401}, [2]int{401, 401}},
		"anonymous":               {config.KubeletAPI{AllowAnonymous: true}, [2]int{200, 200}, [2]int{401, 401}, [2]int{403, 403}, [2]int{401, 401}, [2]int{403, 403}},
		"always allow":            {config.KubeletAPI{AlwaysAllow: true, TokenFile: files.TokenFile}, [2]int{200, 200}, [2]int{401, 401}, [2]int{200, 200}, [2]int{401, 401}, [2]int{401, 401}},
		"anonymous, always allow": {config.KubeletAPI{AllowAnonymous: true, AlwaysAllow: true}, [2]int{200, 200}, [2]int{401, 401}, [2]int{200, 200}, [2]int{401, 401}, [2]int{200, 200}},
	} {
		g := guardFor(t, c.api, own)
		for client, want := range map[*testClient][2]int{
			{name: "root", cert: certificate(t, own, "system:masters")}:        c.root,
			{name: "prom", cert: certificate(t, given, "monitoring")}:          c.prom,
			{name: "token", token: "abc"}:                                      c.token,
			{name: "untrusted", cert: certificate(t, other, "system:masters")}: c.untrusted,
			{name: "anonymous"}: c.anonymous,
		} {
			if got := [2]int{client.status(g, "/metrics"), client.status(g, "/pods")}; got != want {
				t.Errorf("%s, client %s: got status %d, want %d", name, client.name, got, want)
			}
		}
	}

	g := guardFor(t, files, own)
	before, after := testClient{cert: certificate(t, given, "monitoring")}, testClient{cert: certificate(t, other, "monitoring")}
	if a, b := before.status(g, "/metrics"), after.status(g, "/metrics"); a != 200 || b != 401 {
		t.Errorf("before the client CA changed: got status %d and %d, want 200 and 401", a, b)
	}
	write("ca", other.PEM())
	if a, b := before.status(g, "/metrics"), after.status(g, "/metrics"); a != 401 || b != 200 {
		t.Errorf("after the client CA changed: got status %d and %d, want 401 and 200", a, b)
	}
}

// TestClientAccess_Revocation checks that revoked credentials of podd are rejected
// immediately, and that other credentials stay valid.
func TestClientAccess_Revocation(t *testing.T) {
	own, given := authority(t), authority(t)
	ca := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(ca, given.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, api := range map[string]config.KubeletAPI{"without --client-ca-file": {}, "with --client-ca-file": {ClientCAFile: ca}} {
		g := guardFor(t, api, own)
		before, other := testClient{cert: certificate(t, own, "system:masters")}, testClient{cert: certificate(t, given, "system:masters")}
		if got := before.status(g, "/pods"); got != 200 {
			t.Fatalf("%s: before the revocation: got status %d, want 200", name, got)
		}
		wantOther := other.status(g, "/pods")
		if _, err := own.Replace(); err != nil {
			t.Fatal(err)
		}
		after := testClient{cert: certificate(t, own, "system:masters")}
		if old, now, others := before.status(g, "/pods"), after.status(g, "/pods"), other.status(g, "/pods"); old != 401 || now != 200 || others != wantOther {
			t.Errorf("%s: after the revocation: got status %d, %d and %d, want 401, 200 and %d", name, old, now, others, wantOther)
		}
	}
}

// guardFor returns a guard of node n1 without a cluster, with a handler that does nothing.
func guardFor(t *testing.T, c config.KubeletAPI, own *pki.Authority) http.Handler {
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
func (v *testClient) status(h http.Handler, path string) int {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	if v.cert != nil {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{v.cert}}
	}
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	h.ServeHTTP(w, r)
	return w.Code
}

// authority returns a new certificate authority.
func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// certificate returns a client certificate of a group that ca has issued.
func certificate(t *testing.T, ca *pki.Authority, group string) *x509.Certificate {
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
