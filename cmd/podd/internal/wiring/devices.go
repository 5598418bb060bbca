package wiring

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"time"

	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/device"
	"podd/reconcile/device/plugin"
	"podd/reconcile/plugins"
	"podd/server"
)

// PluginOptions configures a PluginServer. Root, Manager and Log are required.
type PluginOptions struct {
	// Root is the root directory with the sockets of plugins.
	Root string
	// Manager gets the devices of the plugins.
	Manager *device.Manager
	// OtherPlugins contains the handlers of other types of plugins that are discovered by their
	// sockets, by type; nil means none.
	OtherPlugins map[string]plugins.Handler
	// IgnoredPlugins is plugins.Watcher.Ignored.
	IgnoredPlugins []string
	// OnRegistered is plugin.Server.OnRegistered.
	OnRegistered func(resource string)
	// OnAllocate is plugin.Server.OnAllocate.
	OnAllocate func(resource string, took time.Duration)
	Log        *slog.Logger
}

// A PluginServer registers the plugins of a root directory. Device plugins need both Watch and
// ServeDevicePlugins; the plugins of other types need only Watch.
type PluginServer struct {
	devices        *plugin.Server
	watcher        plugins.Watcher
	devicesServing chan struct{} // closed when device plugins can register
	log            *slog.Logger
}

// NewPluginServer returns a PluginServer. It registers no plugins before its methods are called.
func NewPluginServer(o PluginOptions) *PluginServer {
	s := &PluginServer{
		devices:        &plugin.Server{Dir: rootdir.DevicePluginsPath(o.Root), Manager: o.Manager, Log: o.Log, OnRegistered: o.OnRegistered, OnAllocate: o.OnAllocate},
		devicesServing: make(chan struct{}), log: o.Log,
	}
	handlers := map[string]plugins.Handler{registration.DevicePlugin: waitingHandler{s.devices.Handler(), s.devicesServing}}
	maps.Copy(handlers, o.OtherPlugins)
	s.watcher = plugins.Watcher{Dir: filepath.Join(o.Root, plugins.DirName), Handlers: handlers, Ignored: o.IgnoredPlugins, Log: o.Log}
	return s
}

// Watch registers plugins that are discovered by their sockets, until ctx is done. Discovered device
// plugins wait for ServeDevicePlugins. Watch must be called only once.
func (s *PluginServer) Watch(ctx context.Context) { s.watcher.Run(ctx) }

// ServeDevicePlugins serves the registration of device plugins until ctx is done. The caller must have
// locked their directory with plugin.LockDir. ServeDevicePlugins must be called only once.
func (s *PluginServer) ServeDevicePlugins(ctx context.Context) error {
	if err := plugin.PrepareDir(s.devices.Dir); err != nil {
		return err
	}
	ln, err := server.ListenRoot(ctx, filepath.Join(s.devices.Dir, plugin.SocketName), s.log)
	if err != nil {
		return err
	}
	close(s.devicesServing)
	return s.devices.Serve(ctx, ln)
}

// A waitingHandler is a Handler that registers plugins after a channel is closed. Until then, Register
// blocks and does not return an error, because plugins exit if they are notified of an error.
type waitingHandler struct {
	plugins.Handler
	ready <-chan struct{}
}

// Register implements plugins.Handler.
func (h waitingHandler) Register(ctx context.Context, p plugins.Plugin) (plugins.Registration, error) {
	select {
	case <-h.ready:
		return h.Handler.Register(ctx, p)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
