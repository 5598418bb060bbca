package runtimetest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"podd/runtime/cri"
)

// Dial returns a client that uses gRPC over an in-memory connection. The client works inside a
// synctest bubble. It is closed when the test ends.
func (r *Runtime) Dial(t testing.TB) *cri.Client {
	listener := bufconn.Listen(64 << 10)
	r.serve(t, listener)
	conn, err := grpc.NewClient("passthrough:///runtimetest",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatalf("dialing the runtime in memory: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return cri.New(conn, cri.Options{Endpoint: "/run/runtimetest.sock", Timeout: r.options.Timeout})
}

// Serve serves gRPC on a Unix socket until the test ends, and returns the path of the socket.
func (r *Runtime) Serve(t testing.TB) string {
	// Do not use t.TempDir, because its path can be too long for a socket.
	dir, err := os.MkdirTemp("", "runtimetest")
	if err != nil {
		t.Fatalf("creating a directory for the socket: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "cri.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatalf("listening for CRI calls: %v", err)
	}
	r.serve(t, listener)
	return path
}

// serve serves on listener until the test ends.
func (r *Runtime) serve(t testing.TB, listener net.Listener) {
	server := grpc.NewServer(grpc.UnaryInterceptor(r.intercept))
	r.register(server)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			t.Errorf("serving CRI: %v", err)
		}
	})
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
}
