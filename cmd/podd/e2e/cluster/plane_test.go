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

// nodes are those that have a kubeconfig; each test takes one.
var nodes = []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13", "n14", "n15", "n16", "n17", "n18", "n19", "w1", "w2", "w3", "w4", "w5", "p1", "p2", "p3", "p4", "p5", "o1", "o2", "o3", "c1", "c2", "conformance"}

// controlPlane is the one of all tests.
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
	return &controlPlane{p, p.Dir, p.URL, p.Admin}, nil
}

// control has the controller manager and the scheduler run until the test ends; the
// controller manager gets flags more. Namespaces have their kube-root-ca.crt then,
// and certificates are signed.
func (p *controlPlane) control(t *testing.T, flags ...string) {
	t.Helper()
	t.Cleanup(func() { p.command(t, "release") })
	p.command(t, strings.Join(append([]string{"control"}, flags...), " "))
}

// command has up do something and waits until it is done.
func (p *controlPlane) command(t *testing.T, word string) {
	t.Helper()
	if err := p.Command(word); err != nil {
		t.Fatal(err)
	}
}

// away kills the API server, and returns what has it serve again, which is done when
// the test ends at the latest: it is everybody's.
func (p *controlPlane) away(t *testing.T) (back func()) {
	t.Helper()
	served := false
	back = func() {
		t.Helper()
		if !served {
			served = true
			p.command(t, "serve")
		}
	}
	t.Cleanup(back)
	p.command(t, "kill")
	return back
}

var errNone = controlplane.ErrNone

// ask makes a request as administrator; answer may be nil.
func (p *controlPlane) ask(method, path string, body, answer any) error {
	return p.Ask(method, path, body, answer)
}

func (p *controlPlane) node(name string) (n *v1.Node, err error) {
	n = &v1.Node{}
	return n, p.ask(http.MethodGet, "/api/v1/nodes/"+name, nil, n)
}

// asked counts what the agent of a node has asked for since a time.
func (p *controlPlane) asked(t *testing.T, node string, since time.Time) map[string]int {
	t.Helper()
	n, err := p.Asked(node, since)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
