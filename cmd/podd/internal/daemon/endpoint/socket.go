package endpoint

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/containers"
	"podd/cmd/podd/internal/daemon/podlog"
	"podd/cmd/podd/internal/daemon/shutdown"
	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile"
	"podd/server"
)

// socketServer returns the server of the socket to which podd's verbs connect. Only root may use the
// socket. apiHandler is the handler of the kubelet API and the Kubernetes API, which the socket also
// serves.
func (h *handlers) socketServer(c *credentialIssuer, apiHandler http.Handler) *server.Server {
	api := &server.API{
		State: h.State, Command: commander{h.State, h.Router, h.Shutdown},
		Logs: h.Logs, Events: h.Events, IssueCredential: c.issue, RevokeCredentials: c.revoke,
		AcceptChange: h.Accept, Orphans: orphans{h.Router, rootdir.PodDirs(h.RootDir)}, Images: imageStore{h.Images},
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", server.RequireSameOrigin(api.Handler()))
	mux.Handle("/", apiHandler)
	return &server.Server{
		Handler: h.Metrics.CountRequests("readwrite", rejectForeignHosts(mux)), AllowsStreams: true, MaxConns: maxKubeletConns,
		MaxHeaderBytes: maxRequestLineBytes, Log: h.Log,
	}
}

// rejectForeignHosts protects h from browsers that reach the socket through ssh -L, on a port of
// another host. An attacker may make the name of a web page resolve to the address of that port
// (DNS rebinding). The page then has the same origin as podd's own page. A browser must therefore
// use localhost or an IP address. A browser must not use a name without a dot, such as the node's
// name, either. Any host on the network of the browser can answer the lookup of such a name
// (LLMNR). Programs may use any name without a dot, because such a name is not public.
func rejectForeignHosts(h http.Handler) http.Handler {
	localhostHandler := server.RequireKnownHost("localhost", h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if server.IsFromBrowser(r) || strings.Contains(r.Host, ".") {
			localhostHandler.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// commander implements server.Commander.
type commander struct {
	state    server.Viewer
	router   *reconcile.Router
	shutdown *shutdown.Manager
}

// Restart implements server.Commander.
func (c commander) Restart(ctx context.Context, pod types.NamespacedName, container string) error {
	p := c.state.View().Pod(server.Key(pod))
	if p == nil {
		return podlog.NewNoPodError(pod)
	}
	if container != "" {
		if err := containers.CheckExists(p, container); err != nil {
			return server.NewNotFoundError(err.Error())
		}
	}
	return c.router.Restart(ctx, pod, container)
}

// Down implements server.Commander. podd itself continues to run, because a service
// manager would start it again, and the pods with it.
func (c commander) Down(ctx context.Context) error { return c.router.StopAll(ctx, "podd down") }

// Shutdown implements server.Commander.
func (c commander) Shutdown(ctx context.Context, grace time.Duration) error {
	return c.shutdown.Begin(ctx, grace)
}

// Resume implements server.Commander.
func (c commander) Resume(ctx context.Context) error { return c.shutdown.Cancel(ctx) }
