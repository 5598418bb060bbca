//go:build e2e

package kubeadm

import (
	"net/http"
	"testing"
	"time"

	"podd/cmd/podd/e2e/controlplane"
	"podd/cmd/podd/e2e/harness"
)

// patience is the maximum time that a test waits for an event.
var patience = harness.MaxWait(3 * time.Minute)

// eventually polls until check returns nil. After patience the test fails with the last error.
func eventually(t *testing.T, condition string, check func() error) {
	t.Helper()
	harness.Eventually(t, patience, condition, check)
}

// A client sends requests to the API server as the user of a kubeconfig.
type client struct{ controlplane.Client }

func newClient(t *testing.T, kubeconfig string) *client {
	t.Helper()
	c, err := controlplane.NewClient(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return &client{c}
}

func (c *client) get(path string, into any) error {
	return c.Do(http.MethodGet, path, nil, into)
}
