// Package cri is the client of a container runtime: CRI v1 over gRPC on a unix
// socket, spoken in the values of package runtime.
//
//	effects ──▶ Client ──▶ socket ◀── Observer ──▶ runtime.Snapshot ──▶ router
//	                          ▲
//	                          └────── NodeObserver ──▶ runtime.Node
//
// Client makes one call a method; any number of goroutines may share it. A
// runtime that is absent, restarted or upgraded costs its callers errors that
// are runtime.ErrUnavailable and nothing else: the connection is made again by
// itself.
//
// Errors are fit to be shown: no gRPC codes, no chains of wrappers, no query
// strings. They do not repeat the subject of the call, which the caller knows
// better ("starting container pg: " + err). What callers branch on is in
// package runtime and found with errors.Is and errors.As.
package cri

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// DefaultTimeout is the time a call may take when Options name none.
const DefaultTimeout = 2 * time.Minute

// Options say where the runtime is.
type Options struct {
	// Endpoint is the runtime's socket, "unix:///path" or a bare path. Required.
	Endpoint string
	// ImageEndpoint serves images where another socket does; "": Endpoint.
	ImageEndpoint string
	// Timeout bounds most calls; zero is DefaultTimeout. RunPodSandbox has
	// twice as long, StopContainer and ExecSync their own time on top, PullImage
	// no bound.
	Timeout time.Duration
	// Called is told of every call that has ended, by the CRI's name of its
	// method, "RunPodSandbox"; nil: nobody is. It may be called concurrently and
	// must not block.
	Called func(method string, took time.Duration, err error)
}

// Client calls one runtime. It is safe for concurrent use.
type Client struct {
	conn     grpc.ClientConnInterface // the runtime's
	runtime  api.RuntimeServiceClient
	images   api.ImageServiceClient
	endpoint string
	timeout  time.Duration
	conns    []*grpc.ClientConn // the distinct ones, empty for New
	dials    atomic.Uint64      // connections made to the runtime so far
	events   atomic.Int32       // eventsUnknown, eventsServed or eventsAbsent
	answers  answers
}

// Whether the runtime serves GetContainerEvents, as the event reader found out.
const (
	eventsUnknown int32 = iota
	eventsServed
	eventsAbsent
)

// Dial returns a client of the runtime that o names. It fails for options that
// cannot be right and not because no runtime answers: the connection is made at
// the first call, and again whenever it breaks.
func Dial(o Options) (*Client, error) {
	path, err := socketPath(o.Endpoint)
	if err != nil {
		return nil, err
	}
	imagePath := path
	if o.ImageEndpoint != "" {
		if imagePath, err = socketPath(o.ImageEndpoint); err != nil {
			return nil, err
		}
	}
	c := &Client{endpoint: path, timeout: o.timeout()}
	conn, err := dialSocket(path, &c.dials, o.Called)
	if err != nil {
		return nil, err
	}
	c.conns = []*grpc.ClientConn{conn}
	images := conn
	if imagePath != path {
		if images, err = dialSocket(imagePath, new(atomic.Uint64), o.Called); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.conns = append(c.conns, images)
	}
	c.conn, c.runtime, c.images = conn, api.NewRuntimeServiceClient(conn), api.NewImageServiceClient(images)
	return c, nil
}

// New returns a client that speaks over conn, which it does not close. It is
// the seam for runtimes that live in the same process.
func New(conn grpc.ClientConnInterface, o Options) *Client {
	return &Client{
		conn:     conn,
		runtime:  api.NewRuntimeServiceClient(conn),
		images:   api.NewImageServiceClient(conn),
		endpoint: o.Endpoint,
		timeout:  o.timeout(),
	}
}

func (o Options) timeout() time.Duration {
	if o.Timeout <= 0 {
		return DefaultTimeout
	}
	return o.Timeout
}

// Endpoint is the path of the runtime's socket.
func (c *Client) Endpoint() string { return c.endpoint }

// Close ends the connections; calls under way fail. Calling it again is harmless.
func (c *Client) Close() error {
	var errs []error
	for _, conn := range c.conns {
		if err := conn.Close(); err != nil && status.Code(err) != codes.Canceled {
			errs = append(errs, fmt.Errorf("closing the connection to %s: %w", c.endpoint, err))
		}
	}
	return errors.Join(errs...)
}

// redial cuts the back-off of a broken connection short.
func (c *Client) redial() {
	for _, conn := range c.conns {
		conn.ResetConnectBackoff()
	}
}

// invoke makes one call with its own deadline and cleans its error.
func invoke[Q, R any](ctx context.Context, c *Client, limit time.Duration,
	call func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := call(bounded, request)
	return response, c.clean(ctx, err)
}
