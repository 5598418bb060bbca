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

// TestGuard_Configuration checks which clients the configured files and switches admit.
// podd's own authority is always accepted, and a client CA only while it is in its file.
func TestGuard_Configuration(t *testing.T) {
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
		api                               config.KubeletAPI
		root, prom, token, stranger, none [2]int // the status codes for /metrics and /pods
	}{
		"nothing":               {config.KubeletAPI{}, [2]int{200, 200}, [2]int{401, 401}, [2]int{401, 401}, [2]int{401, 401}, [2]int{401, 401}},
		"files":                 {files, [2]int{200, 200}, [2]int{200, 403}, [2]int{200, 403}, [2]int{401, 401}, [2]int{401, 401}},
		"anyone":                {config.KubeletAPI{Anonymous: true}, [2]int{200, 200}, [2]int{401, 401}, [2]int{401, 401}, [2]int{401, 401}, [2]int{403, 403}},
		"everything":            {config.KubeletAPI{AlwaysAllow: true, TokenFile: files.TokenFile}, [2]int{200, 200}, [2]int{401, 401}, [2]int{200, 200}, [2]int{401, 401}, [2]int{401, 401}},
		"anyone and everything": {config.KubeletAPI{Anonymous: true, AlwaysAllow: true}, [2]int{200, 200}, [2]int{401, 401}, [2]int{401, 401}, [2]int{401, 401}, [2]int{200, 200}},
	} {
		g, err := newGuard(c.api, own, "n1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		g.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		for who, want := range map[*testClient][2]int{
			{name: "root", shows: certificate(t, own, "system:masters")}:         c.root,
			{name: "prom", shows: certificate(t, given, "monitoring")}:           c.prom,
			{name: "a token", token: "abc"}:                                      c.token,
			{name: "a stranger", shows: certificate(t, other, "system:masters")}: c.stranger,
			{name: "nobody"}: c.none,
		} {
			if got := [2]int{who.status(g, "/metrics"), who.status(g, "/pods")}; got != want {
				t.Errorf("%s: %s is answered %d, want %d", name, who.name, got, want)
			}
		}
	}

	g, err := newGuard(files, own, "n1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	before, after := testClient{shows: certificate(t, given, "monitoring")}, testClient{shows: certificate(t, other, "monitoring")}
	if a, b := before.status(g, "/metrics"), after.status(g, "/metrics"); a != 200 || b != 401 {
		t.Errorf("before: %d, %d", a, b)
	}
	write("ca", other.PEM())
	if a, b := before.status(g, "/metrics"), after.status(g, "/metrics"); a != 401 || b != 200 {
		t.Errorf("after: %d, %d", a, b)
	}
}

// TestGuard_Revocation checks that credentials of podd are rejected as soon as they are
// revoked, and other credentials are not.
func TestGuard_Revocation(t *testing.T) {
	own, given := authority(t), authority(t)
	ca := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(ca, given.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, api := range map[string]config.KubeletAPI{"alone": {}, "with --client-ca-file": {ClientCAFile: ca}} {
		g, err := newGuard(api, own, "n1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		g.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		before, other := testClient{shows: certificate(t, own, "system:masters")}, testClient{shows: certificate(t, given, "system:masters")}
		if got := before.status(g, "/pods"); got != 200 {
			t.Fatalf("%s: before: got %d, want 200", name, got)
		}
		wantOther := other.status(g, "/pods")
		if _, err := own.Replace(); err != nil {
			t.Fatal(err)
		}
		after := testClient{shows: certificate(t, own, "system:masters")}
		if old, now, others := before.status(g, "/pods"), after.status(g, "/pods"), other.status(g, "/pods"); old != 401 || now != 200 || others != wantOther {
			t.Errorf("%s: got %d, %d and %d, want 401, 200 and %d", name, old, now, others, wantOther)
		}
	}
}

// A testClient is a client with its certificate or token.
type testClient struct {
	name  string
	shows *x509.Certificate
	token string
}

func (v *testClient) status(h http.Handler, path string) int {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	if v.shows != nil {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{v.shows}}
	}
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	h.ServeHTTP(w, r)
	return w.Code
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.New("test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func certificate(t *testing.T, of *pki.Authority, group string) *x509.Certificate {
	t.Helper()
	cert, key, err := of.Client("somebody", []string{group}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}
