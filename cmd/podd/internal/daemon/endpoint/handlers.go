package endpoint

import (
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
	"podd/server/auth"
	kubetable "podd/server/kube/table"
	"podd/server/metrics"
	"podd/server/page"
	"podd/server/stats"
)

// handlers builds the handlers of the endpoints.
type handlers struct {
	Options
	stats http.Handler // serves /stats/ and /metrics
}

// statsHandler serves /stats/ and /metrics. certificate is nil if the kubelet API is
// disabled.
func (o *Options) statsHandler(certificate certificateFunc) http.Handler {
	in := metrics.Inputs{State: o.State, Disks: o.Meter.Disks, Certificate: certificate.expiry}
	if c := o.Cluster; c != nil {
		in.ClientCertificate, in.Mirrors = c.ClientCertificate, c.Mirrors
	}
	counts := o.Metrics.Handler(in)
	mux := http.NewServeMux()
	mux.Handle("/", stats.Handler(o.Meter))
	mux.Handle("GET /metrics", counts)
	mux.Handle("GET /metrics/probes", counts)
	mux.Handle("GET /metrics/slis", counts)
	return mux
}

func (h *handlers) health() *server.Health {
	return &server.Health{OnCheck: h.Metrics.RecordHealthCheck, Checks: h.Checks}
}

func (h *handlers) cadvisor() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", stats.CadvisorHandler(h.Meter))
	mux.Handle("GET /", h.page(nil, nil))
	return server.LimitConcurrency(h.trimAfter(server.RequireSameOrigin(server.RequireKnownHost(h.Node, mux))))
}

func (h *handlers) readOnly() http.Handler {
	r := &server.ReadOnly{State: h.State, Health: h.health(), Page: h.page(nil, nil), Stats: h.stats, Node: h.Node}
	return h.Metrics.CountRequests("readonly", server.LimitConcurrency(h.trimAfter(r)))
}

// api returns the handler that the socket and the kubelet API have in common.
func (h *handlers) api(authorizer auth.Authorizer) http.Handler {
	page := h.page(nil, nil)
	if h.Server.API.Debugging {
		page = h.page(h.Logs, h.Events)
	}
	mux := http.NewServeMux()
	node := h.kubeletAPI()
	mux.Handle("/", mergeAPIs(node, h.kubeAPI(authorizer, node)))
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /page/", page)
	if h.Cluster != nil {
		return server.RequireSameOriginOrForwarded(mux)
	}
	return server.RequireSameOrigin(mux)
}

// trimAfter returns a handler that calls next and then returns memory to the operating
// system.
func (h *handlers) trimAfter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.OnRequest() // a stream may have made its allocations already
		defer h.OnRequest()
		next.ServeHTTP(w, r)
	})
}

// page returns the status page. For unauthenticated clients, or if enableDebuggingHandlers
// is false, logs and events are nil, because they quote the output of programs.
func (h *handlers) page(logs server.LogReader, events server.EventLog) http.Handler {
	p := &page.Page{State: h.State, Logs: logs, Events: events, Meter: h.Meter, Columns: func(p *v1.Pod, now time.Time) (ready, status, restarts string) {
		row := kubetable.NewPodCells(p, now)
		return row.Ready, row.Status, row.Restarts
	}}
	return p.Handler()
}
