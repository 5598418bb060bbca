package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// openSocket opens the root-only socket that the verbs talk to. Beside their
// paths it has those of the kubelet and of Kubernetes.
func (d *podd) openSocket(ctx context.Context, others http.Handler) (face, error) {
	ln, err := server.ListenSocket(ctx, d.cfg.RunDir)
	if err != nil {
		return nil, err
	}
	api := &server.API{
		State: d.view.latest, Command: commander{d},
		Logs: d.logReader(), Events: d.events, Credential: d.credential,
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", server.OwnOrigin(api.Handler()))
	mux.Handle("/", others)
	s := &server.Server{
		Handler: d.metrics.Requests("readwrite", forwarded(mux, d.cfg.NodeName)), Streams: true, MaxConns: kubeletConns,
		MaxHeader: maxCommandLine, Log: d.log,
	}
	return func(ctx context.Context) error { return s.Serve(ctx, ln) }, nil
}

// forwarded guards h as ssh -L has it on a port of another machine, where a
// browser may be. Programs name a socket's host as they like: nobody outside
// can have a name without a dot.
func forwarded(h http.Handler, node string) http.Handler {
	known := server.KnownHosts(node, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Host, ".") {
			known.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// commander does what the verbs ask.
type commander struct{ d *podd }

// Restart implements server.Commander.
func (c commander) Restart(ctx context.Context, pod types.NamespacedName, container string) error {
	p := c.d.view.latest.View().Pod(server.Key(pod))
	if p == nil {
		return noPod(pod)
	}
	if container != "" {
		if err := checkContainer(p, container); err != nil {
			return server.NotFound(err.Error())
		}
	}
	return c.d.router.Restart(ctx, pod, container)
}

// Down implements server.Commander. podd itself goes on: a service manager
// would only start it again, and the pods with it.
func (c commander) Down(ctx context.Context) error { return c.d.router.Down(ctx) }

// Shutdown implements server.Commander.
func (c commander) Shutdown(ctx context.Context, grace time.Duration) error {
	groups := c.d.leave.groups
	if grace > 0 {
		groups = shared(groups, grace)
	}
	return c.d.leave.begin(ctx, byUser, groups)
}

// Resume implements server.Commander.
func (c commander) Resume(ctx context.Context) error { return c.d.leave.cancel(ctx) }
