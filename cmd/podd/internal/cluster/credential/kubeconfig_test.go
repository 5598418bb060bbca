package credential

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
)

// newClientFromText writes text to the file kubeconfig in dir, and returns the client that
// NewClient creates from this file.
func newClientFromText(t interface{ Fatal(...any) }, dir, text string) (*apiserver.Client, error) {
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := (&Manager{Config: Config{Kubeconfig: file}, Client: apiserver.Options{ContentType: "application/json"}}).NewClient()
	return c, err
}

func TestManager_NewClient(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(clustertest.Kubeconfig, ", certificate-authority: ca.crt", "", 1)
	for _, credential := range []string{
		"token: hunter2",
		"tokenFile: token",
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, interactiveMode: Never}",
	} {
		c, err := newClientFromText(t, dir, strings.Replace(text, "token: hunter2", credential, 1))
		if err != nil || c.Host != "https://api:6443" {
			t.Errorf("credential %q: got client %+v, error %v; want a client for https://api:6443", credential, c, err)
		}
	}
	for _, invalid := range []string{"", "{}", text[:60], clustertest.Kubeconfig} {
		_, err := newClientFromText(t, dir, invalid)
		if _, ok := err.(KubeconfigError); !ok || !strings.Contains(err.Error(), filepath.Join(dir, "kubeconfig")) {
			t.Errorf("kubeconfig %q: got error %v; want one of the kubeconfig that contains its path", invalid, err)
		}
	}
}

// TestManager_NewClient_Secrets checks that the errors of invalid kubeconfigs contain no secrets.
func TestManager_NewClient_Secrets(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ old, new, want string }{
		{"https://user:hunter2@api:6443", "https://user:hunter2@api::6443", `cluster "c": server is not a valid URL`},
		{"https://user:hunter2@api:6443", "https://user:hunter2", `cluster "c": server is not a valid URL`},
		{"certificate-authority: ca.crt", "proxy-url: 'user:hunter2@proxy:3128'", `cluster "c": proxy-url is not a valid URL`},
		{"certificate-authority: ca.crt", "proxy-url: 'http://user:hunter2@proxy:x'", `cluster "c": proxy-url is not a valid URL`},
		{"user:\n    token: hunter2", "{user: {token: hunter2}}:", "not a valid kubeconfig in YAML or JSON"},
		{"    token: hunter2", "   token: hunter2\n  - hunter2: [", "check line"},
	} {
		_, err := newClientFromText(t, dir, strings.Replace(clustertest.Kubeconfig, c.old, c.new, 1))
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("kubeconfig with %q instead of %q: got error %v; want one that contains %q but not \"hunter2\"", c.new, c.old, err, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(clustertest.Kubeconfig)
		from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
		to := min(len(text), from+rapid.IntRange(0, 20).Draw(t, "length"))
		with := rapid.SampledFrom([]string{"", "\n", ":", "{", "\"", "- ", "\t", "0x1"}).Draw(t, "with")
		c, err := newClientFromText(t, dir, string(text[:from])+with+string(text[to:]))
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("got error %v, want one without \"hunter2\"", err)
		}
		if c != nil && strings.Contains(c.Host, "hunter2") {
			t.Fatalf("got a client for %s, want a host without \"hunter2\"", c.Host)
		}
	})
}
