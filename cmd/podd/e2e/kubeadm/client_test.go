//go:build e2e

package kubeadm

import (
	"net/http"
	"os"
	"testing"
	"time"

	"podd/cmd/podd/e2e/controlplane"
)

// patience is the maximum time that a test waits for an event: three minutes, or
// $PODD_E2E_PATIENCE on a slow host.
var patience = func() time.Duration {
	if given, err := time.ParseDuration(os.Getenv("PODD_E2E_PATIENCE")); err == nil {
		return given
	}
	return 3 * time.Minute
}()

// eventually polls until is returns nil. After patience it fails with the last error.
func eventually(t *testing.T, what string, is func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: %v", what, err)
		}
	}
}

// A client sends requests to the API server as the user of a kubeconfig.
type client struct{ controlplane.Client }

func newClient(t *testing.T, kubeconfig string) *client {
	t.Helper()
	c, err := controlplane.Connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return &client{c}
}

func (c *client) get(path string, into any) error {
	return c.Do(http.MethodGet, path, nil, into)
}
