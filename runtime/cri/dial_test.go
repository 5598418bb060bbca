package cri

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
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
