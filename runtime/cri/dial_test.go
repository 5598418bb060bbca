package cri

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"podd/runtime"
)

// serveContentTypes starts a server that rejects every call with the content type of the
// request as the error message. It returns the socket of the server.
func serveContentTypes(t *testing.T) (socket string) {
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		header, _ := metadata.FromIncomingContext(stream.Context())
		return status.Error(codes.Unknown, header.Get("content-type")[0])
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // returns after Stop
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return socket
}

// TestDial_SendsContentTypeWithoutSubtype checks the content type of requests. CRI-O serves
// gRPC and its streaming endpoints on one socket, and accepts a request as gRPC only if its
// content type is application/grpc without a subtype.
func TestDial_SendsContentTypeWithoutSubtype(t *testing.T) {
	c, err := Dial(Options{Endpoint: serveContentTypes(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, call := range map[string]func() error{
		"Version":        func() error { _, err := c.Node(t.Context()); return err },
		"ImageStatus":    func() error { _, _, err := c.ImageStatus(t.Context(), "busybox"); return err },
		"ListPodSandbox": func() error { return c.list(t.Context(), new(listing), nil) },
		"GetContainerEvents": func() error {
			stream, err := c.subscribe(t.Context())
			if err == nil {
				err = stream.RecvMsg(new(wireEvent))
			}
			return err
		},
	} {
		if err := call(); err == nil || !strings.HasSuffix(err.Error(), "application/grpc") {
			t.Errorf("%s: got content type %v, want application/grpc", name, err)
		}
	}
}

// TestNode_NoCRI checks the errors for the sockets of programs that do not serve CRI: Docker's API,
// which does not support HTTP/2, and a containerd whose CRI plugin is disabled.
func TestNode_NoCRI(t *testing.T) {
	web, grpcServer := new(http.Server), grpc.NewServer()
	for name, c := range map[string]struct {
		serve         func(net.Listener) error
		close         func()
		cause, remedy string
	}{
		"docker.sock":     {web.Serve, func() { _ = web.Close() }, "the socket belongs to another program", "set --container-runtime-endpoint"},
		"containerd.sock": {grpcServer.Serve, grpcServer.Stop, `"cri" is probably in disabled_plugins`, `remove "cri" from disabled_plugins in containerd's config.toml, and restart containerd`},
	} {
		socket := filepath.Join(t.TempDir(), name)
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.serve(listener) // returns after close
		}()
		client, err := Dial(Options{Endpoint: socket})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Node(t.Context())
		noCRIErr, ok := errors.AsType[*NoCRIError](err)
		if !ok || !errors.Is(err, runtime.ErrUnimplemented) || !strings.Contains(noCRIErr.Cause, c.cause) || !strings.Contains(noCRIErr.Remedy, c.remedy) {
			t.Errorf("%s: got error %v, want a NoCRIError with the cause %q and the remedy %q", name, err, c.cause, c.remedy)
		}
		client.Close()
		c.close()
		<-done
	}
}
