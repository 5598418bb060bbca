package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/cri"
	"podd/server"
	"podd/server/auth"
	kubetable "podd/server/kube/table"
	"podd/server/page"
	"podd/server/stats"
)

// A part that took no turn for stuckAfter is stuck; the router takes one every
// pulseEvery even when there is nothing to do.
const (
	pulseEvery = 10 * time.Second
	stuckAfter = 2 * time.Minute
)

// pulse remembers the router's last turn. Safe for concurrent use.
type pulse struct {
	began time.Time // when podd started
	last  atomic.Pointer[time.Time]
}

func (p *pulse) beat() {
	now := time.Now()
	p.last.Store(&now)
}

// stuck returns since when there was no beat, if that is too long; before the
// first one, since podd's start.
func (p *pulse) stuck() error {
	last := p.last.Load()
	switch {
	case last == nil && time.Since(p.began) >= stuckAfter:
		return fmt.Errorf("the sync loop has not taken its first turn, %s after podd's start", sinceAbout(p.began))
	case last != nil && time.Since(*last) >= stuckAfter:
		return fmt.Errorf("the sync loop took its last turn %s ago", sinceAbout(*last))
	}
	return nil
}

func sinceAbout(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }

func (d *podd) health() *server.Health {
	return &server.Health{Observed: d.metrics.Checked, Checks: []server.Check{
		{Name: "syncloop", Func: d.pulse.stuck},
		{Name: "runtime", Func: d.runtimeStuck},
	}}
}

func (d *podd) runtimeStuck() error { return runtimeStuck(d.pods.Health(), d.pulse.began) }

// runtimeStuck: a runtime that was not there when podd began has that long too.
func runtimeStuck(h cri.Health, began time.Time) error {
	switch {
	case h.Err == nil:
		return nil
	case h.LastRelist.IsZero() && time.Since(began) >= stuckAfter:
		return fmt.Errorf("the runtime has not answered yet, %s after podd's start: %w", sinceAbout(began), h.Err)
	case !h.LastRelist.IsZero() && time.Since(h.LastRelist) >= stuckAfter:
		return fmt.Errorf("the runtime last answered %s ago: %w", sinceAbout(h.LastRelist), h.Err)
	}
	return nil
}

// face answers others until ctx is done.
type face func(ctx context.Context) error

// faces opens every configured one, so that a taken port is told at once.
func (d *podd) faces(ctx context.Context) ([]face, error) {
	d.meter = d.newMeter()
	meter := d.meter
	measures := d.measures(meter)
	guard := &auth.Guard{Authorizer: auth.Policy{}}
	if d.pki != nil {
		var err error
		if guard, err = newGuard(d.cfg.API, d.pki, d.cfg.NodeName, d.log); err != nil {
			return nil, err
		}
		d.askCluster(guard)
	}
	guard.Authorizer = auth.Writes{Authorizer: guard.Authorizer} // ephemeral containers are always served
	api := d.api(guard.Authorizer, meter, measures)
	api = d.trimmed(api)
	guard.Handler = server.NewGate(api) // of its own: others keep root from nothing
	socket, err := d.openSocket(ctx, auth.As(auth.Root(), server.NewGate(api)))
	if err != nil {
		return nil, err
	}
	all := []face{socket}
	if d.pki != nil {
		f, err := d.openKubelet(ctx, guard)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	for _, port := range []struct {
		flag, addr string
		handler    func() http.Handler
	}{
		{"--healthz-port", d.cfg.HealthzListen, func() http.Handler { return d.health() }},
		{"--cadvisor-port", d.cfg.CadvisorListen, func() http.Handler { return d.cadvisor(meter) }},
		{"--read-only-port", d.cfg.ReadOnlyListen, func() http.Handler { return d.readOnly(meter, measures) }},
	} {
		if port.addr == "" {
			continue
		}
		f, err := d.openTCP(ctx, port.flag, port.addr, port.handler())
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func (d *podd) cadvisor(meter server.Meter) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", stats.Cadvisor(meter))
	mux.Handle("GET /", d.page(nil, nil, meter))
	return server.NewGate(d.trimmed(server.OwnOrigin(server.KnownHosts(d.cfg.NodeName, mux))))
}

func (d *podd) readOnly(meter server.Meter, measures http.Handler) http.Handler {
	h := &server.ReadOnly{
		State: d.view.latest, Health: d.health(), Page: d.page(nil, nil, meter), Stats: measures, Node: d.cfg.NodeName,
	}
	return d.metrics.Requests("readonly", server.NewGate(d.trimmed(h)))
}

// api is what the socket and the kubelet's port have in common.
func (d *podd) api(who auth.Authorizer, meter server.Meter, measures http.Handler) http.Handler {
	page := d.page(nil, nil, meter)
	if d.cfg.API.Debugging {
		page = d.page(d.logReader(), d.events, meter)
	}
	mux := http.NewServeMux()
	node := d.kubeletAPI(measures)
	mux.Handle("/", both(node, d.kubeAPI(who, meter, node)))
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /page/", page)
	if d.cluster != nil {
		return server.OwnOriginOrForwarded(mux)
	}
	return server.OwnOrigin(mux)
}

// measures is what /stats/ and /metrics tell.
func (d *podd) measures(meter server.Meter) http.Handler {
	counts := d.metrics.Handler(d.view.latest)
	mux := http.NewServeMux()
	mux.Handle("/", stats.Handler(meter))
	mux.Handle("GET /metrics", counts)
	mux.Handle("GET /metrics/probes", counts)
	mux.Handle("GET /metrics/slis", counts)
	return mux
}

// trimmed has h give back the memory that answering took.
func (d *podd) trimmed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.trimmer.touch() // what lasts may have taken all it needs
		defer d.trimmer.touch()
		h.ServeHTTP(w, r)
	})
}

// page is the node at a glance; without logs and events, which quote
// what programs said, for those whom nobody vouches for and with
// enableDebuggingHandlers off.
func (d *podd) page(logs server.LogReader, events server.EventLog, meter server.Meter) http.Handler {
	p := &page.Page{State: d.view.latest, Logs: logs, Events: events, Meter: meter, Words: func(p *v1.Pod, now time.Time) (ready, word, restarts string) {
		row := kubetable.WordsOf(p, now)
		return row.Ready, row.Status, row.Restarts
	}}
	return p.Handler()
}

func (d *podd) openTCP(ctx context.Context, flag, addr string, h http.Handler) (face, error) {
	ln, err := server.Listen(ctx, flag, addr)
	if err != nil {
		return nil, err
	}
	s := &server.Server{Handler: h, Log: d.log}
	return func(ctx context.Context) error { return s.Serve(ctx, ln) }, nil
}
