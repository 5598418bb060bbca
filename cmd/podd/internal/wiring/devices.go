package wiring

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"

	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/device"
	"podd/reconcile/device/plugin"
	"podd/reconcile/plugins"
	"podd/server"
)

// DevicePluginOptions configures ServeDevicePlugins. Root, Manager and Log are required.
type DevicePluginOptions struct {
	// Root is the root directory with the sockets of plugins. The caller must have locked the
	// directory of device plugins in it with plugin.LockDir.
	Root string
	// Manager gets the devices of the plugins.
	Manager *device.Manager
	// OtherPlugins contains the handlers of other types of plugins that are discovered by their
	// sockets, by type; nil means none.
	OtherPlugins map[string]plugins.Handler
	// OnRegistered is plugin.Server.OnRegistered.
	OnRegistered func(resource string)
	Log          *slog.Logger
}

// ServeDevicePlugins serves the registration of device plugins, and registers plugins that are
// discovered by their sockets, until ctx is done.
func ServeDevicePlugins(ctx context.Context, o DevicePluginOptions) error {
	dir := rootdir.DevicePluginsPath(o.Root)
	if err := plugin.PrepareDir(dir); err != nil {
		return err
	}
	ln, err := server.ListenRoot(ctx, filepath.Join(dir, plugin.SocketName), o.Log)
	if err != nil {
		return err
	}
	s := &plugin.Server{Dir: dir, Manager: o.Manager, Log: o.Log, OnRegistered: o.OnRegistered}
	kinds := map[string]plugins.Handler{registration.DevicePlugin: s.Handler()}
	maps.Copy(kinds, o.OtherPlugins)
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // cancel must run before watch.Wait, which would otherwise block if Serve returns an error
	watch.Go(func() {
		w := &plugins.Watcher{Dir: filepath.Join(o.Root, plugins.DirName), Handlers: kinds, Log: o.Log}
		w.Run(ctx)
	})
	return s.Serve(ctx, ln)
}
