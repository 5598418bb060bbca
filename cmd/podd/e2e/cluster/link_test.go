//go:build e2e

package cluster

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A link is a connection between one agent and the API server that a test can cut. A test that
// kills the API server, which all tests share, could not run in parallel with other tests.
type link struct {
	listener net.Listener
	target   string // address of the API server

	mu    sync.Mutex
	isCut bool
	conns []net.Conn // both ends of the open connections
}

// connectThroughLink makes the agent connect to the API server through a link, and returns the link. It
// must be called before the agent starts. The link is cut before the agent stops.
func (a *agent) connectThroughLink() *link {
	a.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	a.useServer(listener.Addr().String())
	l := &link{listener: listener, target: strings.TrimPrefix(plane.url, "https://")}
	var accepting sync.WaitGroup
	accepting.Go(func() { l.accept(a.t) })
	a.t.Cleanup(func() {
		listener.Close()
		accepting.Wait()
		l.cut()
	})
	return l
}

// useServer makes the agent use a kubeconfig with this address of an API server, and returns the name of the
// file. It must be called before the agent starts.
func (a *agent) useServer(address string) (file string) {
	a.t.Helper()
	text, err := os.ReadFile(filepath.Join(plane.dir, a.node+".kubeconfig"))
	if err != nil {
		a.t.Fatal(err)
	}
	file = filepath.Join(a.dir, "kubeconfig")
	config := strings.ReplaceAll(string(text), plane.url, "https://"+address)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		a.t.Fatal(err)
	}
	a.flags = append(a.flags, "--kubeconfig", file)
	return file
}

// accept forwards each connection until the listener is closed.
func (l *link) accept(t *testing.T) {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.target)
		if err != nil {
			t.Logf("connecting to the API server: %v", err)
			near.Close()
			continue
		}
		l.forward(near, far)
	}
}

// forward copies both directions of a connection. It closes the connection if the link is cut.
func (l *link) forward(near, far net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		near.Close()
		far.Close()
		return
	}
	l.conns = append(l.conns, near, far)
	go func() { _, _ = io.Copy(far, near); far.Close() }()
	go func() { _, _ = io.Copy(near, far); near.Close() }()
}

// cut closes all connections, also those that the agent opens before mend is called.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// mend lets the agent connect again.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = false
}
