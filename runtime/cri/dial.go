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
	// maxMessage is the message limit of the kubelet and containerd.
	maxMessage = 16 << 20
	// maxList limits a list of all sandboxes or containers. Thousands of pods, each with
	// annotations, need more than maxMessage.
	maxList = 512 << 20
	// ioBuffer is the size of each connection's buffers. Lists of a hundred pods need more
	// system calls with it, but podd needs less memory.
	ioBuffer = 8 << 10
	// window is the flow control window of one response. Setting it disables gRPC's
	// bandwidth estimates, because a socket does not need their pings.
	window = 1 << 20
)

// dialSocket returns a lazy connection to a unix socket. dials counts the connections that
// were made; called is as in Options.
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
