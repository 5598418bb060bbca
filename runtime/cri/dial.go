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
	// maxMessage is the kubelet's and containerd's bound on one message.
	maxMessage = 16 << 20
	// ioBuffer is what each connection reads and writes at once. Lists of a
	// hundred pods take some more system calls with it, and podd less memory.
	ioBuffer = 8 << 10
	// window is how much one answer may run ahead of its reader. Naming it
	// turns off gRPC's bandwidth estimates, whose pings a socket does not need.
	window = 1 << 20
)

// dialSocket returns a lazy connection to a unix socket; dials counts the
// connections that came about, called is as in Options.
func dialSocket(socket string, dials *atomic.Uint64, called func(string, time.Duration, error)) (*grpc.ClientConn, error) {
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			dials.Add(1)
		}
		return conn, err
	}
	options := append(dialOptions(), grpc.WithContextDialer(dialer))
	if called != nil {
		options = append(options, grpc.WithUnaryInterceptor(measured(called)))
	}
	conn, err := grpc.NewClient("passthrough:///"+socket, options...)
	if err != nil {
		return nil, fmt.Errorf("dialing the container runtime at %s: %w", socket, err)
	}
	return conn, nil
}

func measured(called func(string, time.Duration, error)) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		began := time.Now()
		err := call(ctx, method, req, reply, conn, options...)
		called(path.Base(method), time.Since(began), err)
		return err
	}
}

func dialOptions() []grpc.DialOption {
	steps := backoff.DefaultConfig
	steps.BaseDelay, steps.MaxDelay = 100*time.Millisecond, 3*time.Second
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: steps, MinConnectTimeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage), grpc.ForceCodecV2(codec{})),
		grpc.WithReadBufferSize(ioBuffer),
		grpc.WithWriteBufferSize(ioBuffer),
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithDisableHealthCheck(),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0),
	}
}
