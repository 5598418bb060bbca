package runtimetest

import (
	"context"
	"encoding"
	"errors"
	"io"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A directConn is a connection that calls the methods of the service directly. It copies the
// messages, as a network connection would.
type directConn struct{ r *Runtime }

func (c *directConn) Invoke(ctx context.Context, method string, request, response any, _ ...grpc.CallOption) error {
	if err := ctx.Err(); err != nil {
		return toStatus(err)
	}
	handler, ok := methods[path.Base(method)]
	if !ok {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	decode := func(into any) error {
		proto.Merge(into.(proto.Message), request.(proto.Message))
		return nil
	}
	reply, err := handler(&service{Runtime: c.r}, ctx, decode, c.r.intercept)
	if err != nil {
		return toStatus(err)
	}
	return deliver(reply.(proto.Message), response)
}

// deliver copies a response to the value that the client passed. If the value decodes messages
// itself, deliver passes the encoded bytes to the value.
func deliver(reply proto.Message, to any) error {
	switch m := to.(type) {
	case encoding.BinaryUnmarshaler:
		b, err := proto.Marshal(reply)
		if err != nil {
			return err
		}
		return m.UnmarshalBinary(b)
	case proto.Message:
		proto.Merge(m, reply)
		return nil
	}
	return status.Errorf(codes.Internal, "copying the response: a %T is not a CRI message", to)
}

// methods contains the generated handlers of both services by method name. No method name occurs in
// both services.
var methods = func() map[string]grpc.MethodHandler {
	all := map[string]grpc.MethodHandler{}
	for _, d := range []grpc.ServiceDesc{api.RuntimeService_ServiceDesc, api.ImageService_ServiceDesc} {
		for _, m := range d.Methods {
			all[m.MethodName] = m.Handler
		}
	}
	return all
}()

// toStatus converts an error of a handler to the error that a client receives over gRPC.
func toStatus(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unknown, err.Error())
}

func (c *directConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	if path.Base(method) != "GetContainerEvents" {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	c.r.mu.Lock()
	isDown := c.r.isDown
	c.r.mu.Unlock()
	if isDown {
		return nil, errDown
	}
	s := &directStream{ctx: ctx, events: make(chan *api.ContainerEventResponse), end: make(chan error, 1)}
	c.r.callsInProgress.Go(func() {
		err := (&service{Runtime: c.r}).GetContainerEvents(nil, &directServerStream{directStream: s, ended: c.r.testContext})
		if err == nil {
			err = io.EOF
		}
		s.end <- toStatusOrEOF(err)
	})
	return s, nil
}

func toStatusOrEOF(err error) error {
	if err == io.EOF {
		return err
	}
	return toStatus(err)
}

// directStream is the client's end of a stream of events.
type directStream struct {
	ctx    context.Context
	events chan *api.ContainerEventResponse
	end    chan error
}

func (s *directStream) Header() (metadata.MD, error) { return nil, nil }
func (s *directStream) Trailer() metadata.MD         { return nil }
func (s *directStream) CloseSend() error             { return nil }
func (s *directStream) Context() context.Context     { return s.ctx }
func (s *directStream) SendMsg(any) error            { return nil }

func (s *directStream) RecvMsg(m any) error {
	select {
	case e := <-s.events:
		return deliver(e, m)
	case err := <-s.end:
		return err
	case <-s.ctx.Done():
		return toStatus(s.ctx.Err())
	}
}

// directServerStream is the server's end of a stream of events.
type directServerStream struct {
	*directStream
	ended context.Context
}

func (s *directServerStream) SetHeader(metadata.MD) error  { return nil }
func (s *directServerStream) SendHeader(metadata.MD) error { return nil }
func (s *directServerStream) SetTrailer(metadata.MD)       {}

func (s *directServerStream) Send(e *api.ContainerEventResponse) error {
	select {
	case s.events <- e:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-s.ended.Done():
		return errLost
	}
}
