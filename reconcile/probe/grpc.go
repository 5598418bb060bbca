package probe

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
)

// probeGRPC runs a gRPC probe. It passes if the health service reports SERVING.
func (t Target) probeGRPC(ctx context.Context, a *v1.GRPCAction) (Result, error) {
	host, err := t.host("")
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	addr := net.JoinHostPort(host, strconv.Itoa(int(a.Port)))
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent(userAgent), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return newDialer().DialContext(ctx, "tcp", addr)
		}))
	if err != nil {
		return Result{}, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	defer conn.Close()
	request := &health.HealthCheckRequest{}
	if a.Service != nil {
		request.Service = *a.Service
	}
	res, err := health.NewHealthClient(conn).Check(ctx, request, grpc.MaxCallRecvMsgSize(maxBodyBytes))
	if err != nil {
		return newFailure(t.grpcErrorText(addr, err))
	}
	if s := res.GetStatus(); s != health.HealthCheckResponse_SERVING {
		return newFailure(fmt.Sprintf("service unhealthy (responded with %q)", s))
	}
	return Result{Passed: true}, nil
}

func (t Target) grpcErrorText(addr string, err error) string {
	s, _ := status.FromError(err)
	switch s.Code() {
	case codes.Unimplemented:
		return "this server does not implement the grpc health protocol (grpc.health.v1.Health): " + s.Message()
	case codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: health rpc to %s did not complete within %s", addr, t.Timeout)
	case codes.Unavailable:
		return fmt.Sprintf("failed to connect service at %s: %s", addr, s.Message())
	}
	return "health rpc probe failed: " + s.Message()
}
