// Package endpoint opens the endpoints of the daemon: the socket for podd's verbs, the
// port of the kubelet API, and the ports of health checks and metrics.
package endpoint

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/daemon/meter"
	"podd/cmd/podd/internal/daemon/podlog"
	"podd/cmd/podd/internal/daemon/shutdown"
	"podd/reconcile"
	"podd/reconcile/gc/images"
	"podd/runtime/cri"
	"podd/server"
	"podd/server/auth"
	"podd/server/events"
	"podd/server/httptrace"
	"podd/server/kube/write"
	"podd/server/metrics"
	"podd/server/pki"
)

// Options are the options of Open. All fields are required unless their comment allows nil.
type Options struct {
	Node      string // name of the node
	RootDir   string
	RunDir    string    // contains the socket
	StartTime time.Time // when podd started

	Server config.Server
	// RedactedConfig is the configuration that /configz and /flagz show.
	RedactedConfig config.RedactedConfig
	// PKI issues podd's own certificates; nil disables the kubelet API.
	PKI *pki.Authority
	// Cluster is nil if the node is in no cluster.
	Cluster *Cluster
	// ServingIPs returns the addresses at which clients may currently reach this node.
	ServingIPs func() []net.IP

	State    server.Viewer
	Router   *reconcile.Router
	Shutdown *shutdown.Manager
	Images   *images.Manager
	Runtime  *cri.Client
	Logs     *podlog.Reader
	Events   *events.Log
	Metrics  *metrics.Metrics
	Meter    *meter.Meter
	// PullRecordCounts is metrics.Inputs.PullRecords.
	PullRecordCounts func() (intents, records int)
	HealthChecks     []server.Check // checks of /healthz
	// Manifests is the directory that the Kubernetes API writes. If it is nil, the API is
	// read-only.
	Manifests write.ManifestStore
	// Accept accepts a change of the host that podd has reported as a problem. It returns a message
	// for the user.
	Accept func(context.Context, server.AcceptedChange) (message string, err error)
	// SetVerbosity changes the log level.
	SetVerbosity func(int)
	// OnRequest is called before and after each request, so that podd can later free the memory
	// that the request has used.
	OnRequest func()
	// Tracer creates the spans of requests; nil means that there are none.
	Tracer trace.Tracer
	Log    *slog.Logger
}

// An Endpoint serves requests until ctx is done.
type Endpoint func(ctx context.Context) error

// Open opens all configured endpoints. It listens immediately, so that podd does not start
// if a port is in use. If it returns an error, no endpoint is open.
func Open(ctx context.Context, o Options) (all []Endpoint, err error) {
	var listeners []net.Listener
	defer func() {
		if err != nil {
			for _, ln := range listeners {
				_ = ln.Close()
			}
		}
	}()
	certificate, err := o.newCertificateFunc()
	if err != nil {
		return nil, err
	}
	access, err := o.clientAccess()
	if err != nil {
		return nil, err
	}
	h := &handlers{Options: o, stats: o.statsHandler(certificate)}
	api := h.withOnRequest(httptrace.Handler(o.Tracer, h.commonHandler(access.authorizer)))
	var kubelet *server.Server
	if o.PKI != nil {
		// The kubelet API has its own limit of concurrent requests, so that its clients cannot use
		// up the connections of the socket.
		kubelet = o.kubeletServer(access.guard(o.Node, server.LimitConcurrency(api)), certificate)
	}
	creds := &credentialIssuer{Options: o, certificate: certificate, kubelet: kubelet}
	add := func(s *server.Server, ln net.Listener) {
		listeners = append(listeners, ln)
		all = append(all, func(ctx context.Context) error { return s.Serve(ctx, ln) })
	}
	ln, err := server.ListenSocket(ctx, o.RunDir, o.Log)
	if err != nil {
		return nil, err
	}
	add(h.socketServer(creds, auth.ServeAs(auth.RootUser(), server.LimitConcurrency(api))), ln)
	if kubelet != nil {
		ln, err := server.Listen(ctx, "--port", o.Server.API.Address)
		if err != nil {
			return nil, err
		}
		add(kubelet, ln)
	}
	for _, port := range []struct {
		flag, addr string
		handler    func() http.Handler
	}{
		{"--healthz-port", o.Server.HealthzAddress, func() http.Handler { return h.healthHandler() }},
		{"--cadvisor-port", o.Server.CadvisorAddress, h.cadvisorHandler},
		{"--read-only-port", o.Server.ReadOnlyAddress, h.readOnlyHandler},
	} {
		if port.addr == "" {
			continue
		}
		ln, err := server.Listen(ctx, port.flag, port.addr)
		if err != nil {
			return nil, err
		}
		add(&server.Server{Handler: port.handler(), Log: o.Log}, ln)
	}
	return all, nil
}
