//go:build e2e

package cluster

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/e2e/controlplane"
	"podd/runtime/runtimetest/stack/tools"
)

// nodes contains the names of the nodes for which the control plane creates a kubeconfig. Each test uses
// a different node.
var nodes = []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13", "n14", "n15", "n16", "n17", "n18", "n19", "n20", "n21", "n22", "n23", "n24", "n25", "w1", "w2", "w3", "w4", "w5", "p1", "p2", "p3", "p4", "p5", "o1", "o2", "o3", "o4", "o5", "o6", "c1", "c2", "c3", "c4", "other", "conformance"}

// controlPlane is the control plane that all tests share.
type controlPlane struct {
	*controlplane.Plane
	dir, url string
	admin    *http.Client
}

func startPlane(ctx context.Context, made tools.ControlPlane, dir string) (*controlPlane, error) {
	p, err := controlplane.Start(ctx, made, dir, nodes...)
	if err != nil {
		return nil, err
	}
	return &controlPlane{p, p.Dir, p.URL, p.AdminClient}, nil
}

// startControllers runs the scheduler and the controller manager, with additional flags, until
// the test ends. While they run, each namespace gets the ConfigMap kube-root-ca.crt, and
// approved certificates are signed.
func (p *controlPlane) startControllers(t *testing.T, flags ...string) {
	t.Helper()
	t.Cleanup(func() { p.command(t, "release") })
	p.command(t, strings.Join(append([]string{"control"}, flags...), " "))
}

// command sends a command to the program up and waits until the program has executed the command.
func (p *controlPlane) command(t *testing.T, word string) {
	t.Helper()
	if err := p.SendCommand(word); err != nil {
		t.Fatal(err)
	}
}

// killAPIServer kills the API server. The returned function starts it again. If the test does
// not call this function, the cleanup of the test does, because all tests share the server.
func (p *controlPlane) killAPIServer(t *testing.T) (restart func()) {
	t.Helper()
	restarted := false
	restart = func() {
		t.Helper()
		if !restarted {
			restarted = true
			p.command(t, "serve")
		}
	}
	t.Cleanup(restart)
	p.command(t, "kill")
	return restart
}

var errNotFound = controlplane.ErrNotFound

// do sends a request as administrator and decodes the response; body and into may be nil.
func (p *controlPlane) do(method, path string, body, into any) error {
	return p.Do(method, path, body, into)
}

func (p *controlPlane) node(name string) (n *v1.Node, err error) {
	n = &v1.Node{}
	return n, p.do(http.MethodGet, "/api/v1/nodes/"+name, nil, n)
}

// requestCounts returns the number of requests of the node's agent since a time, by verb and
// resource.
func (p *controlPlane) requestCounts(t *testing.T, node string, since time.Time) map[string]int {
	t.Helper()
	n, err := p.CountRequests(node, since)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
