package probe

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	service "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// serveGRPC starts a gRPC server that runs until the test ends.
func serveGRPC(t *testing.T, register func(*grpc.Server), o ...grpc.ServerOption) (*v1.ProbeHandler, Target) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(o...)
	register(s)
	ended := make(chan error)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-ended })
	to := newTarget(t, l.Addr())
	return &v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: to.Ports[1].ContainerPort}}, to
}

func TestGRPC(t *testing.T) {
	h := health.NewServer()
	var agent []string
	recordAgent := grpc.UnaryInterceptor(func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		agent = md.Get("user-agent")
		return next(ctx, q)
	})
	probe, to := serveGRPC(t, func(s *grpc.Server) { service.RegisterHealthServer(s, h) }, recordAgent)
	checkAttempt(t, probe, to, true, "")
	if len(agent) != 1 || agent[0] != "kube-probe/"+manifest.KubernetesRelease()+" grpc-go/"+grpc.Version {
		t.Errorf("user agent: got %q, want kube-probe/%s grpc-go/%s", agent, manifest.KubernetesRelease(), grpc.Version)
	}
	h.SetServingStatus("", service.HealthCheckResponse_NOT_SERVING)
	checkAttempt(t, probe, to, false, `service unhealthy (responded with "NOT_SERVING")`)
	name := "db"
	probe.GRPC.Service = &name
	checkAttempt(t, probe, to, false, "health rpc probe failed: unknown service")
	h.SetServingStatus(name, service.HealthCheckResponse_SERVING)
	checkAttempt(t, probe, to, true, "")
}

func TestGRPC_NotImplemented(t *testing.T) {
	probe, to := serveGRPC(t, func(*grpc.Server) {})
	checkAttempt(t, probe, to, false, "this server does not implement the grpc health protocol")
}

// TestGRPC_NoResponse checks a server that accepts connections and does not respond, and
// an address where no server listens.
func TestGRPC_NoResponse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := newTarget(t, l.Addr())
	to.Timeout = time.Second // long enough to connect
	probe := &v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: to.Ports[1].ContainerPort}}
	checkAttempt(t, probe, to, false, "timeout: health rpc to "+l.Addr().String()+" did not complete within 1s")
	l.Close()
	to.Timeout = 5 * time.Minute
	checkAttempt(t, probe, to, false, "failed to connect service at "+l.Addr().String())
}
