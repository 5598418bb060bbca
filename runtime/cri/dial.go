package cri

import (
	"context"
	"fmt"
	"net"
	"path"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// maxMessageSize is the maximum message size of the kubelet and containerd.
	maxMessageSize = 16 << 20
	// maxListSize is the maximum size of a list of all sandboxes or containers. Thousands of
	// pods with annotations need more than maxMessageSize.
	maxListSize = 512 << 20
	// ioBufferSize is the size of a connection's read and write buffers. This small size saves
	// memory but costs more system calls for lists of a hundred pods.
	ioBufferSize = 8 << 10
	// flowControlWindow is the flow control window of one response. A fixed window disables gRPC's
	// bandwidth estimation, whose pings a unix socket does not need.
	flowControlWindow = 1 << 20
)

// dialSocket returns a connection to a unix socket. The connection is established at the first
// call. dialSocket counts established connections in dials.
func dialSocket(socket string, dials *atomic.Uint64, o Options) (*grpc.ClientConn, error) {
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			dials.Add(1)
		}
		return conn, err
	}
	options := append(dialOptions(), grpc.WithContextDialer(dialer))
	if o.OnCall != nil {
		options = append(options, grpc.WithChainUnaryInterceptor(reportCalls(o.OnCall)))
	}
	if o.Tracer != nil {
		options = append(options, grpc.WithChainUnaryInterceptor(traceCalls(o.Tracer)))
	}
	conn, err := grpc.NewClient("passthrough:///"+socket, options...)
	if err != nil {
		return nil, fmt.Errorf("dialing the container runtime at %s: %w", socket, err)
	}
	return conn, nil
}

// reportCalls returns an interceptor that calls onCall after every call.
func reportCalls(onCall func(method string, duration time.Duration, err error)) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		start := time.Now()
		err := call(ctx, method, req, reply, conn, options...)
		onCall(path.Base(method), time.Since(start), err)
		return err
	}
}

// dialOptions returns the gRPC options of every connection.
func dialOptions() []grpc.DialOption {
	steps := backoff.DefaultConfig
	steps.BaseDelay, steps.MaxDelay = 100*time.Millisecond, 3*time.Second
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: steps, MinConnectTimeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageSize), grpc.MaxCallSendMsgSize(maxMessageSize), grpc.ForceCodecV2(codec{})),
		grpc.WithReadBufferSize(ioBufferSize),
		grpc.WithWriteBufferSize(ioBufferSize),
		grpc.WithInitialWindowSize(flowControlWindow),
		grpc.WithInitialConnWindowSize(flowControlWindow),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithDisableHealthCheck(),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0),
	}
}
