package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime/logs"
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

func (d *podd) logReader() logReader {
	return logReader{d.view.latest, render.Node{LogsDir: d.cfg.PodLogsDir}, d.logs}
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

// logReader finds the log of a pod's container.
type logReader struct {
	state    server.Viewer
	node     render.Node
	notifier *logs.Notifier // of all who follow
}

// Logs implements server.LogReader.
func (l logReader) Logs(ctx context.Context, req server.LogRequest, w io.Writer) error {
	o, err := l.options(req)
	if err != nil {
		return err
	}
	out := logs.Joiner{To: func(e logs.Entry) error { return writeEntry(w, e, req.Timestamps) }}
	err = logs.Read(ctx, *o, out.Emit)
	err = errors.Join(err, out.Flush())
	if errors.Is(err, fs.ErrNotExist) {
		return noLog(l.state.View().Pod(server.Key(req.Pod)), req)
	}
	return err
}

// options are how to read what is asked for.
func (l logReader) options(req server.LogRequest) (*logs.Options, error) {
	p := l.state.View().Pod(server.Key(req.Pod))
	if p == nil {
		return nil, noPod(req.Pod)
	}
	if err := checkContainer(p, req.Container); err != nil {
		return nil, server.NotFound(err.Error())
	}
	pod := &manifest.Pod{Key: req.Pod, UID: p.Pod.UID}
	first, runs := runningID(p, req.Container)
	follow := req.Follow && !req.Previous // what has ended is not added to
	o := &logs.Options{
		Dir: render.LogDirectory(pod, l.node), Container: req.Container,
		// The newest run that has ended is the newest of all in a back-off.
		Previous: req.Previous && runs, Follow: follow, Notifier: l.notifier, Tail: tail(req.Tail),
		Since: req.Since, Limit: req.Limit, Stream: logs.Stream(req.Stream),
	}
	if follow {
		o.Ended = l.ended(p, req.Container, first)
	}
	return o, nil
}

// tail: the reader takes 0 for all, the request a negative number.
func tail(n int64) int {
	switch {
	case n < 0:
		return 0
	case n == 0:
		return -1
	}
	return int(min(n, 1<<30))
}

func writeEntry(w io.Writer, e logs.Entry, stamp bool) error {
	line := e.Text
	if stamp && len(e.Stamp) > 0 {
		line = slices.Concat(e.Stamp, []byte(" "), line)
	}
	if !e.Partial {
		line = append(slices.Clip(line), '\n')
	}
	_, err := w.Write(line)
	return err
}

// ended tells whether the container of the ID first, or for "" the next to run,
// has ended, or its pod.
func (l logReader) ended(of *server.PodView, container, first string) func() (bool, <-chan struct{}) {
	return func() (bool, <-chan struct{}) {
		view := l.state.View()
		p := view.Pod(of.Key())
		if p == nil || p.Pod.UID != of.Pod.UID {
			return true, nil
		}
		id, runs := runningID(p, container)
		if first == "" {
			first = id
		}
		return !runs && first != "" || first != id, l.state.Changed(view.Revision)
	}
}

func runningID(p *server.PodView, container string) (id string, runs bool) {
	if c := statusOf(p, container); c != nil {
		return c.ContainerID, c.State.Running != nil
	}
	return "", false
}
