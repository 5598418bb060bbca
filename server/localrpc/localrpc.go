// Package localrpc serves the kubelet's gRPC APIs for other programs on this node. Each API has a
// Unix socket.
package localrpc

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxConns and connTimeout limit connections.
const (
	maxConns    = 64
	connTimeout = 10 * time.Second
)

// NewServer returns a server that limits the memory that clients can use. options are further
// options, such as interceptors.
func NewServer(options ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(64<<10), grpc.MaxConcurrentStreams(16), grpc.ConnectionTimeout(connTimeout),
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10), grpc.MaxHeaderListSize(16<<10),
	)...)
}

// Serve serves on ln until ctx is done. It then returns nil.
func Serve(ctx context.Context, s *grpc.Server, ln net.Listener) error {
	stop := context.AfterFunc(ctx, s.Stop)
	defer stop()
	err := s.Serve(netutil.LimitListener(ln, maxConns))
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// NewLimiter returns a limiter with the kubelet's limits on requests.
func NewLimiter() *rate.Limiter { return rate.NewLimiter(100, 10) }

// LimitRate returns an interceptor that rejects a request, with the kubelet's error, if l does not
// allow it.
func LimitRate(l *rate.Limiter) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if !l.Allow() {
			return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
		}
		return handler(ctx, req)
	}
}
