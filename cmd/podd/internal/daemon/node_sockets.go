package daemon

import (
	"context"
	"path/filepath"
	"sync"

	"podd/server"
	"podd/server/podsapi"
)

// serveNodeSockets serves the registration of plugins, the pod resources API and the pods API until ctx
// is done. If one of them fails, it logs the error, because pods still run.
func (p *parts) serveNodeSockets(ctx context.Context) {
	var goroutines sync.WaitGroup
	plugins := p.newPluginServer()
	goroutines.Go(func() { plugins.Watch(ctx) })
	endpoints := map[string]func(context.Context) error{
		"registration of device plugins": func(ctx context.Context) error { return p.serveDevicePlugins(ctx, plugins) },
		"pod resources API":              p.servePodResources,
	}
	if !p.cfg.DisablePodsAPI {
		endpoints["pods API"] = p.servePods
	}
	for name, serve := range endpoints {
		goroutines.Go(func() {
			if err := serve(ctx); err != nil && ctx.Err() == nil {
				p.log.Error("serving the "+name+" failed; it is unavailable until podd restarts", "err", err)
			}
		})
	}
	goroutines.Wait()
}

// servePods serves the pods API.
func (p *parts) servePods(ctx context.Context) error {
	ln, err := server.ListenRoot(ctx, filepath.Join(p.cfg.RootDir, "pods-api", "pods-api.sock"), p.log)
	if err != nil {
		return err
	}
	s := &podsapi.Server{State: p.view.Latest, OnRequest: p.metrics.RecordPodsRequest}
	return s.Serve(ctx, ln)
}
