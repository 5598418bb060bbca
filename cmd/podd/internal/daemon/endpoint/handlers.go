package endpoint

import (
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
	"podd/server"
	"podd/server/auth"
	"podd/server/cadvisor"
	kubetable "podd/server/kube/table"
	"podd/server/metrics"
	"podd/server/page"
	"podd/server/stats"
)

// handlers builds the handlers of the endpoints.
type handlers struct {
	Options
	stats http.Handler // serves /stats/, /metrics and /spec/
}

// statsHandler returns the handler of /stats/, /metrics and /spec/. certificate is nil if the kubelet API
// is disabled.
func (o *Options) statsHandler(certificate certificateFunc) http.Handler {
	in := metrics.Inputs{State: o.State, Disks: o.Meter.Disks, PullRecords: o.PullRecordCounts, CertificateExpiry: certificate.expiry}
	if k := o.RedactedConfig.Kubelet; k != nil {
		in.FeatureGates = func(visit func(name, stage string, isEnabled bool)) {
			config.VisitFeatureGates(k.FeatureGates, visit)
		}
	}
	if c := o.Cluster; c != nil {
		in.ClientCertificateExpiry, in.MirrorPodCount, in.CountPodCertificates = c.ClientCertExpiry, c.MirrorCount, c.CountPodCertificates
	}
	counts := o.Metrics.Handler(in)
	mux := http.NewServeMux()
	mux.Handle("/", stats.Handler(o.Meter))
	mux.Handle("GET /spec/{$}", cadvisor.MachineHandler(o.Meter))
	mux.Handle("GET /metrics", counts)
	mux.Handle("GET /metrics/probes", counts)
	mux.Handle("GET /metrics/slis", counts)
	return mux
}

// healthHandler returns the handler of /healthz and similar paths.
func (h *handlers) healthHandler() *server.Health {
	return &server.Health{OnCheck: h.Metrics.RecordHealthCheck, Checks: h.HealthChecks}
}

// cadvisorHandler returns the handler of the port for cAdvisor's metrics and its API.
func (h *handlers) cadvisorHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", stats.CadvisorHandler(h.Meter))
	for _, method := range []string{"GET", "POST"} {
		mux.Handle(method+" /api/", cadvisor.Handler(h.Meter))
	}
	mux.Handle("GET /", h.pageHandler(nil, nil))
	return server.LimitConcurrency(h.withOnRequest(server.RequireSameOrigin(server.RequireKnownHost(h.Node, mux))))
}

// readOnlyHandler returns the handler of the read-only port.
func (h *handlers) readOnlyHandler() http.Handler {
	r := &server.ReadOnlyHandler{State: h.State, Health: h.healthHandler(), Page: h.pageHandler(nil, nil), Stats: h.stats, Node: h.Node}
	return h.Metrics.CountRequests("readonly", server.LimitConcurrency(h.withOnRequest(r)))
}

// commonHandler returns the handler for the paths that the socket and the port of the kubelet API
// serve in the same way.
func (h *handlers) commonHandler(authorizer auth.Authorizer) http.Handler {
	page := h.pageHandler(nil, nil)
	if h.Server.API.EnableDebugging {
		page = h.pageHandler(h.Logs, h.Events)
	}
	mux := http.NewServeMux()
	node := h.kubeletAPIHandler()
	mux.Handle("/", mergeAPIs(node, h.kubeAPIHandler(authorizer, node)))
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /page/", page)
	if h.Cluster != nil {
		return server.RequireSameOriginOrForwarded(mux)
	}
	return server.RequireSameOrigin(mux)
}

// withOnRequest returns a handler that wraps the handler next, and calls OnRequest before and after
// each request. OnRequest lets podd return the memory of the request to the operating system later,
// when podd is idle.
func (h *handlers) withOnRequest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.OnRequest() // also before the request, because a stream may end long after its allocations
		defer h.OnRequest()
		next.ServeHTTP(w, r)
	})
}

// pageHandler returns the handler of the status page. If logs and events are nil, the page does
// not show them. They are nil for unauthenticated clients, and if enableDebuggingHandlers is
// false, because logs and events quote the output of programs.
func (h *handlers) pageHandler(logs server.LogReader, events server.EventLog) http.Handler {
	p := &page.Page{State: h.State, Logs: logs, Events: events, Meter: h.Meter, PodColumns: func(p *v1.Pod, now time.Time) (ready, status, restarts string) {
		row := kubetable.NewPodCells(p, now)
		return row.Ready, row.Status, row.Restarts
	}}
	return p.Handler()
}
